"""Write the figures and the examples into docs/examples-of-summaries.md.

Which reasonings are shown, and what is said of each summary, is in `examples.toml`, written by hand
after reading: whoever writes the examples anew reads them again.
"""

from __future__ import annotations

import asyncio
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from tests.quality import corpus, form, report
from tests.quality.corpus import Reasoning
from tests.quality.gates import GATES, score
from tests.quality.run import Options, Shown, run

PAGE = Path(__file__).parents[2] / "docs" / "examples-of-summaries.md"

SUMMARIES = PAGE.with_name("summaries.md")

BESIDE = ("climb", "loaves", "kaution", "zh-log", "ja-plant", "regalo")
"""Reasonings that are shown in full, in as many languages as may be."""

EXAMPLES = Path(__file__).with_name("examples.toml")

BEGINNING_CHARS = 240


def write(parts: Path | None, model: str | None) -> None:
    """Write the built-in summarizer's sections, and the model's if its parts are given."""
    shown = embedded()
    text = PAGE.read_text(encoding="utf-8")
    for name, section in embedded_sections(shown).items():
        text = with_section(text, name, section)
    if parts is not None:
        by_model = report.read_shown(parts, [one.reasoning for one in shown])
        lines = [f"## Written by {model}\n" if model else "## Written by a model\n"]
        lines += examples(by_model, verdicts("model"))
        text = with_section(text, "model", "\n".join(lines))
    PAGE.write_text(text, encoding="utf-8")


def embedded() -> list[Shown]:
    """Return what the built-in summarizer makes of the project's own corpus."""
    return asyncio.run(run(corpus.load(), Options(pace=0)))


def embedded_sections(shown: Sequence[Shown]) -> Mapping[str, str]:
    """Return the sections of the page that the code makes, by the names of their marks."""
    return {
        "figures": "\n".join(_figures([report.Result.of(one) for one in shown])),
        "embedded": "\n".join(examples(shown, verdicts("embedded"))),
        "beside": "\n".join(_beside({one.reasoning.name: one for one in shown})),
    }


def write_floor(model: str, found: Mapping[str, int], shown: Sequence[Shown]) -> None:
    """Write what a model's parts are into the table of those that were counted."""
    text = SUMMARIES.read_text(encoding="utf-8")
    rows = section(text, "floor").splitlines()
    if not rows:
        rows = [
            _row(["writes", *found, "output tokens"]),
            _row(["---", *["---:"] * (len(found) + 1)]),
        ]
    row = _row([model, *map(str, found.values()), form.output_tokens(shown)])
    kept = [line for line in rows if not line.startswith(f"| {model} |")]
    SUMMARIES.write_text(with_section(text, "floor", "\n".join([*kept, row])), encoding="utf-8")


def _row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def section(text: str, name: str) -> str:
    """Return what is between the marks of a section."""
    return text.partition(_mark(name))[2].partition(_mark(f"end of {name}"))[0].strip()


def with_section(text: str, name: str, written: str) -> str:
    """Return the page with a section in place of what was between its marks."""
    before, _, rest = text.partition(_mark(name))
    after = rest.partition(_mark(f"end of {name}"))[2]
    return f"{before}{_mark(name)}\n\n{written}\n\n{_mark(f'end of {name}')}{after}"


def _mark(name: str) -> str:
    return f"<!-- {name} -->"


def verdicts(writer: str) -> Mapping[str, str]:
    """Return what is said of each summary that is shown, by the reasoning's name."""
    said: Mapping[str, str] = tomllib.loads(EXAMPLES.read_text(encoding="utf-8"))[writer]
    return said


def _figures(results: Sequence[report.Result]) -> Iterator[str]:
    measures = [one.measure for one in results]
    yield "| | built-in summarizer | bound |\n|---|---:|---:|"
    for gate in GATES:
        yield f"| {gate.name} | {report.short(gate.figure(measures))} | {gate.target} |"
    yield f"| score, of 100 | {report.short(score(measures))} | |"
    yield "\n| | built-in summarizer | OpenAI's models |\n|---|---:|---:|"
    for figure in report.style(results, timed=False):
        if figure.value is not None:
            yield f"| {figure.name} | {report.short(figure.value)} | {figure.openai} |"


def examples(shown: Sequence[Shown], said: Mapping[str, str]) -> Iterator[str]:
    """Yield the lines of each example, in the order in which the verdicts name them."""
    by_name = {one.reasoning.name: one for one in shown}
    for name, verdict in said.items():
        if name in by_name:
            yield from _example(by_name[name], verdict)


def _example(shown: Shown, verdict: str) -> Iterator[str]:
    reasoning = shown.reasoning
    yield f"### {reasoning.name}: {reasoning.kind}, in the manner of {reasoning.manner}\n"
    yield (
        f"{len(reasoning.text):,} characters "
        f"([all of it](../tests/quality/reasonings/{reasoning.name}.txt)), which begin: "
        f"“{_beginning(reasoning)} …”\n"
    )
    yield from _quoted(shown.parts)
    if verdict:
        yield f"{verdict}\n"


def _beside(shown: Mapping[str, Shown]) -> Iterator[str]:
    """Yield whole reasonings, each with its summary."""
    for name in BESIDE:
        yield f"### {name}, in full\n\n~~~~text\n{shown[name].reasoning.text}\n~~~~\n"
        yield from _quoted(shown[name].parts)


def _quoted(parts: Iterable[str]) -> Iterator[str]:
    for part in parts:
        yield "\n".join(f"> {line}".rstrip() for line in part.splitlines())
        yield ""


def _beginning(reasoning: Reasoning) -> str:
    """Return the first words of a reasoning, in one line and without marks that would show."""
    words = " ".join(reasoning.prose[: 2 * BEGINNING_CHARS].split())[:BEGINNING_CHARS]
    beginning = words if reasoning.language in ("zh", "ja") else words.rpartition(" ")[0]
    return beginning.replace("$", "\\$").replace("**", "").replace("```", "")
