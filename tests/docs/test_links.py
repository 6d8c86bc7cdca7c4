"""Check the links of the pages for readers.

Each relative link leads to a file of the project, and its anchor to a heading there, named as
GitHub names it; in text, in tables, in pictures and by reference. Each page, and each file of
docs/, is reached from the README by following links. Links to other sites are not followed.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from urllib.parse import unquote

import pytest

from tests.docs.pages import PAGES, ROOT, name_of, without_fences

LINK = re.compile(r"\]\(<?([^)\s>]+)>?(?: \"[^\"]*\")?\)|^\[[^\]]+\]: *(\S+)", re.MULTILINE)
OTHER_SITE = re.compile(r"[a-z][a-z0-9+.-]*:", re.IGNORECASE)
HEADING = re.compile(r"^#{1,6} +(.*?)(?: +#+)?$", re.MULTILINE)
ANCHOR = re.compile(r"<a (?:id|name)=\"([^\"]+)\"")

START = ROOT / "README.md"
REACHED = [*PAGES, *(file for file in ROOT.glob("docs/**/*") if file.is_file())]


def links_of(page: Path) -> Iterator[tuple[Path, str]]:
    """Yield the file and the anchor of each relative link."""
    text = re.sub(r"`+[^`\n]+`+", "", without_fences(page))
    for match in LINK.finditer(text):
        link = match[1] or match[2]
        if not OTHER_SITE.match(link):
            path, _, anchor = unquote(link).partition("#")
            yield (page.parent / path).resolve() if path else page, anchor


@cache
def anchors_of(page: Path) -> frozenset[str]:
    """Return the anchors that GitHub gives the headings of a page."""
    text = without_fences(page)
    counts: Counter[str] = Counter()
    found = set(ANCHOR.findall(text))
    for heading in HEADING.findall(text):
        shown = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", heading)
        slug = re.sub(r"[^\w\- ]", "", shown.strip().lower()).replace(" ", "-")
        found.add(f"{slug}-{counts[slug]}" if counts[slug] else slug)
        counts[slug] += 1
    return frozenset(found)


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_link_leads_somewhere(page: Path) -> None:
    wrong = []
    for target, anchor in links_of(page):
        inside = target.is_relative_to(ROOT)
        if not inside or not target.exists():
            wrong.append(f"{target} does not exist")
        elif anchor and anchor not in anchors_of(target):
            wrong.append(f"{name_of(target)} has no heading #{anchor}")
    assert not wrong


def test_every_page_and_file_is_reached_from_the_readme() -> None:
    reached, pending = {START}, [START]
    while pending:
        for target, _ in links_of(pending.pop()):
            if target not in reached and target.is_file():
                reached.add(target)
                pending += [target] if target.suffix == ".md" else []
    missing = [name_of(file) for file in REACHED if file not in reached]
    assert not missing


def test_links_are_found_in_every_form(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        '[a](a.md#b) ![c](c.svg) | [d](d.md "title") | [e][f] `[no](code.md)` [no](https://x.y)\n'
        "```text\n[no](fence.md)\n```\n[f]: f.md\n[g](#own)\n"
    )
    found = [(target.name, anchor) for target, anchor in links_of(page)]
    assert found == [("a.md", "b"), ("c.svg", ""), ("d.md", ""), ("f.md", ""), ("page.md", "own")]


def test_anchors_are_named_as_github_names_them(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "# `server.keys_file`, and why?\n## Same\n## Same\n## A [link](x.md) & more\n"
        "```toml\n# no heading\n```\n"
    )
    anchors = {"serverkeys_file-and-why", "same", "same-1", "a-link--more"}
    assert anchors_of(page) == anchors
