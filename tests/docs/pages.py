"""The pages for readers, and the fenced blocks in them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]

PATTERNS = (
    *("README.md", "CHANGELOG.md", ".github/*.md", "docs/**/*.md"),
    *("deploy/README.md", "tests/benchmarks/README.md", "tests/campaigns/README.md"),
)

PAGES = [page for pattern in PATTERNS for page in sorted(ROOT.glob(pattern))]

ADDRESS, MODEL = "http://127.0.0.1:8400", "your-model"
"""What the pages write where readers put their own."""

_FENCE = re.compile(r"^( *)```(\w*)\n(.*?)^\1```$", re.MULTILINE | re.DOTALL)
_NEEDS = re.compile(r"<!-- needs (pip|npm): (.+) -->\s*$")


@dataclass(frozen=True)
class Block:
    """A fenced block. `needs` names packages, by the installer that has them; `output` is the block
    of text that follows at once, or after a sentence, and shows what the program prints."""

    page: Path
    line: int
    language: str
    text: str
    needs: tuple[str, str] | None = None
    output: str = ""

    def __str__(self) -> str:
        return f"{name_of(self.page)}:{self.line}"


def name_of(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


def blocks_of(page: Path) -> Iterator[Block]:
    """Yield the fenced blocks of a page."""
    text = page.read_text()
    found = list(_FENCE.finditer(text))
    for number, match in enumerate(found):
        indent, language, content = match.groups()
        needs = _NEEDS.search(text[: match.start()])
        following = found[number + 1] if number + 1 < len(found) else None
        between = text[match.end() : following.start()] if following else "#"
        shows_output = following is not None and following[2] == "text" and "#" not in between
        yield Block(
            page,
            text.count("\n", 0, match.start()) + 1,
            language,
            re.sub(f"^{indent}", "", content, flags=re.MULTILINE),
            (needs[1], needs[2]) if needs else None,
            following[3] if following and shows_output else "",
        )


def blocks(*languages: str) -> list[Block]:
    """Return the blocks of all pages in these languages."""
    return [block for page in PAGES for block in blocks_of(page) if block.language in languages]


def texts_of(page: str, language: str) -> list[str]:
    """Return the texts of a page's blocks in a language. The page is named from the root."""
    return [block.text for block in blocks_of(ROOT / page) if block.language == language]


def without_fences(page: Path) -> str:
    """Return a page without its blocks and comments, which hold no links and no headings."""
    return re.sub(r"<!--.*?-->", "", _FENCE.sub("", page.read_text()), flags=re.DOTALL)


def assert_printed(output: str, printed: str) -> None:
    """Assert that what a page shows of an output was printed, in that order; `…` stands for any
    text."""
    place = 0
    for piece in filter(None, (piece.strip() for piece in re.split(r"…|\n", output))):
        found = printed.find(piece, place)
        assert found >= 0, f"{piece!r} is not in what follows\n{printed[place:]}"
        place = found + len(piece)


def with_readers_own(text: str, address: str) -> str:
    """Put a reader's own address and model in, here those of `abridge demo --serve`."""
    return text.replace(ADDRESS, address).replace(MODEL, "scripted")
