"""Compare what clients get from this checkout with what they got from another one.

    python -m tests.differential --against ../before

Every recording, and answers made up, go over the same API and each bridge, passed, with a summary,
hidden behind one, and hidden; and with reasoning kept: what envelopes hold is shown then, and what
is remembered. What differs on purpose stands in `MEANT`, with its reason.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from difflib import unified_diff
from itertools import zip_longest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

MEANT = {
    "messages-ec6c02df": "thinking in a text of Messages is reasoning over bridges, too",
    r"speech (4[3-7]|63|7[5-8]|8[5-8]|10[2-9]|110) of gemini -> .*, (hidden|none)": (
        "what breaks off before it is certain to be text is reasoning, also of Gemini's; "
        "and after calls and blanks text is still held until it is certain"
    ),
    r"(stream (7|24|27|41|58)|speech (6|2[0-2]|46|59|7[236]|8[3-6])) of responses .*(den|none)": (
        "the fields of a delta that Abridge makes have one order; the rest of a message after "
        "reasoning need not wait, and what is held of a call that breaks off is not told"
    ),
    r"^thinking \d+ of responses -> responses": "upstream's frames keep the order of their fields",
    "responses-93390b00.* of responses -> (chat|messages), (hidden|none)": (
        "opaque state tells that reasoning has come: text after it need not wait"
    ),
}
"""By a pattern of cases' names, why they differ."""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--against", type=Path, required=True, help="another checkout")
    parser.add_argument("--examples", type=int, default=60, help="of each kind and API")
    parser.add_argument("--show", type=int, default=5, help="differences to print whole")
    parser.add_argument("--only", default="", help="a pattern of what to compare")
    given = parser.parse_args()
    same, different, meant = 0, 0, 0
    checkouts = given.against, ROOT
    pairs = zip_longest(*(record(one, given.examples, given.only) for one in checkouts))
    for before, after in pairs:
        if before == after:
            same += 1
        elif before and any(re.search(pattern, before[0]) for pattern in MEANT):
            meant += 1
        else:
            different += 1
            report(before, after, whole=different <= given.show)
    print(f"{same} the same, {meant} differ on purpose, {different} differ")
    return 1 if different else 0


def record(checkout: Path, examples: int, only: str) -> Iterator[tuple[str, str]]:
    """Run the cases of this checkout over the code of another."""
    path = os.pathsep.join([str(checkout.resolve() / "middleware"), str(ROOT)])
    command = [sys.executable, "-m", "tests.differential.record", str(examples), only]
    environment = {**os.environ, "PYTHONPATH": path}
    with subprocess.Popen(
        command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        for line in process.stdout:
            name, got = json.loads(line)
            yield name, got
    if process.returncode:
        sys.exit(f"{checkout} ended with {process.returncode}")


def report(before: tuple[str, str] | None, after: tuple[str, str] | None, *, whole: bool) -> None:
    print((before or after or ("",))[0])
    if whole and before and after:
        lines = unified_diff(before[1].splitlines(), after[1].splitlines(), lineterm="", n=0)
        for line in list(lines)[:30]:
            print("   ", line[:300])


if __name__ == "__main__":
    sys.exit(main())
