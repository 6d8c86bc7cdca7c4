"""Summarize a corpus of reasonings through the real pipeline, and measure what comes.

Without `--model` the built-in summarizer writes. With it, a model at `--base-url` does, which
speaks Chat Completions. With `--real` a small model does that is installed and run for it.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, get_args

from abridge.core.styles import SummaryStyle
from tests.quality import corpus, form, page, real, report
from tests.quality.corpus import Reasoning
from tests.quality.run import AT_ONCE, PACE, Options, Shown, run


def main(arguments: Sequence[str] | None = None) -> int:
    """Return 0 if all gates hold, else 1."""
    parser = _parser()
    parsed = parser.parse_args(arguments)
    if parsed.examples is not None:
        page.write(Path(parsed.examples) if parsed.examples else None, parsed.model)
        return 0
    if (parsed.model is None) != (parsed.base_url is None):
        parser.error("--model and --base-url belong together")
    reasonings = corpus.load(parsed.corpus)
    chosen = [one for one in reasonings if not parsed.only or one.name in parsed.only]
    if unknown := set(parsed.only or ()) - {one.name for one in reasonings}:
        parser.error(f"there is no {', '.join(sorted(unknown))}")
    if parsed.read:
        shown = report.read_shown(parsed.read, chosen)
    else:
        shown = asyncio.run(_run(chosen, parsed))
    results = [report.Result.of(one) for one in shown]
    _print(results, timed=parsed.pace > 0 and not parsed.read)
    found = form.counts(shown, parsed.style)
    print("\n" + "\n".join(form.table(found, shown)))
    if parsed.floor:
        page.write_floor(parsed.model or "extractive", found, shown)
    if parsed.csv:
        said = report.describe_run(parsed.model or "extractive", parsed.pace, parsed.style)
        report.append_csv(parsed.csv, results, said)
    if parsed.parts:
        report.write_parts(parsed.parts, shown)
    if parsed.real:
        return 0 if form.holds(found) else 1
    return 0 if report.all_hold(results) else 1


async def _run(chosen: Sequence[Reasoning], parsed: argparse.Namespace) -> list[Shown]:
    async with _model(parsed):
        return await run(chosen, _options(parsed))


@asynccontextmanager
async def _model(parsed: argparse.Namespace) -> AsyncIterator[None]:
    """Run the small model where it is asked for, and no other is."""
    if not parsed.real or parsed.base_url is not None:
        yield
        return
    async with real.served() as parsed.base_url:
        parsed.model = real.MODEL
        yield


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.quality", description=__doc__)
    parser.add_argument("--base-url", help="where a summarizer model is served, up to /v1")
    parser.add_argument("--model", help="the summarizer model")
    parser.add_argument(
        "--real",
        action="store_true",
        help="install and run a small model, unless --base-url names one; the form of its parts "
        "decides, not what they say",
    )
    parser.add_argument(
        "--floor", action="store_true", help="write the form's figures into docs/summaries.md"
    )
    parser.add_argument("--api-key-env", help="the environment variable with its key")
    parser.add_argument("--style", choices=get_args(SummaryStyle), default="auto")
    parser.add_argument("--language", help="the language to write in, such as de")
    parser.add_argument(
        "--pace", type=float, default=PACE, help="tokens a second (80); 0: as fast as it goes"
    )
    parser.add_argument("--at-once", type=int, default=AT_ONCE, help="reasonings at once (8)")
    parser.add_argument("--corpus", type=Path, default=corpus.OWN, help="a folder with a manifest")
    parser.add_argument("--only", nargs="+", metavar="NAME", help="only these reasonings")
    parser.add_argument("--csv", type=Path, help="append a row a reasoning to this file")
    parser.add_argument("--parts", type=Path, help="write the parts to this file, as JSON")
    parser.add_argument("--read", type=Path, help="measure the parts in this file; run nothing")
    parser.add_argument(
        "--examples",
        nargs="?",
        const="",
        metavar="PARTS",
        help="write figures and examples of the built-in summarizer into their page in docs/; "
        "with a file of parts, also those of the model that --model names",
    )
    return parser


def _options(parsed: argparse.Namespace) -> Options:
    tables: dict[str, Any] = {}
    if parsed.model is not None:
        tables["summarizer"] = {
            "kind": "model",
            "base_url": parsed.base_url,
            "model": parsed.model,
            "api_key_env": parsed.api_key_env,
            **({"timeout": real.TIMEOUT} if parsed.real else {}),
        }
        if parsed.real:
            tables["summary"] = {"grace": real.TIMEOUT, "first_token": real.TIMEOUT}
    return Options(tables, parsed.pace, parsed.style, parsed.language, parsed.at_once)


def _print(results: Sequence[report.Result], *, timed: bool) -> None:
    tables = (
        report.score_table(results, timed=timed),
        report.style_table(results, timed=timed),
        report.gate_table(results),
    )
    print("\n\n".join("\n".join(table) for table in tables))
    for one in results:
        if one.shown.failures:
            print(f"\n{one.shown.reasoning.name}: failed: {', '.join(one.shown.failures)}")


if __name__ == "__main__":
    sys.exit(main())
