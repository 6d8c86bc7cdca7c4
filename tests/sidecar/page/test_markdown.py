"""Markdown becomes elements, in a real browser; what is hostile stays text."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator

import pytest

from tests.sidecar.page.asking import Model, Open
from tests.sidecar.page.chromium import Tab
from tests.support.upstream import Answer

LINK = 'target="_blank" rel="noopener noreferrer"'


@pytest.fixture
async def tab(page: Open) -> AsyncIterator[Tab]:
    async with page(Model(Answer())) as tab:
        yield tab


async def rendered(tab: Tab, text: str) -> str:
    """Return the HTML of the elements that a text becomes, as the browser writes it."""
    return str(
        await tab.get(
            f"""(async () => {{
              const module = new URL("abridge/page/markdown.js", document.baseURI);
              const {{blocks}} = await import(module);
              const box = document.createElement("div");
              box.append(...blocks({json.dumps(text)}).map((block) => block.build()));
              document.body.append(box);
              return box.innerHTML;
            }})()"""
        )
    )


async def test_what_markdown_becomes(tab: Tab) -> None:
    for text, html in {
        "one\ntwo\n\nthree": "<p>one\ntwo</p><p>three</p>",
        "# A **b** #": "<h3>A <strong>b</strong></h3>",
        "###### deep": "<h6>deep</h6>",
        "#hash": "<p>#hash</p>",
        "---": "<hr>",
        "*a* _b_ **c** __d__ ***e*** ~~f~~": (
            "<p><em>a</em> <em>b</em> <strong>c</strong> <strong>d</strong> "
            "<strong><em>e</em></strong> <del>f</del></p>"
        ),
        "snake_case_name, 2 * 3 * 4, **open": "<p>snake_case_name, 2 * 3 * 4, **open</p>",
        r"\*no\* `*a* <b>`": "<p>*no* <code>*a* &lt;b&gt;</code></p>",
        "- a\n  - b\n- c\n\nd": (
            "<ul><li><p>a</p><ul><li><p>b</p></li></ul></li><li><p>c</p></li></ul><p>d</p>"
        ),
        "3. a\n   - b\n4. c": (
            '<ol start="3"><li><p>a</p><ul><li><p>b</p></li></ul></li><li><p>c</p></li></ol>'
        ),
        "- [x] done\n- [ ] to do": "<ul><li><p>☑ done</p></li><li><p>☐ to do</p></li></ul>",
        "> a\n> - b": "<blockquote><p>a</p><ul><li><p>b</p></li></ul></blockquote>",
        "```py\nif a < b:\n    *c*\n```\nd": (
            '<pre tabindex="0" data-language="py"><code>if a &lt; b:\n    *c*</code></pre><p>d</p>'
        ),
        "~~~\nopen": '<pre tabindex="0" data-language=""><code>open</code></pre>',
        "[a **b**](https://x.test/(1))": (
            f'<p><a href="https://x.test/(1)" title="https://x.test/(1)" {LINK}>'
            "a <strong>b</strong></a></p>"
        ),
        "[1] (see https://x.test/a).": (
            f'<p>[1] (see <a href="https://x.test/a" title="https://x.test/a" {LINK}>'
            "https://x.test/a</a>).</p>"
        ),
    }.items():
        assert await rendered(tab, text) == html
    assert tab.complaints == []


async def test_a_table_has_a_head_and_sides(tab: Tab) -> None:
    html = await rendered(tab, "| a | b |\n|---|--:|\n| `x` \\| y | 2 | 3 |\n| z |\n\nend")
    assert "<thead><tr><th" in html
    assert '<td class="">' in html
    assert '<td class="right">2</td></tr>' in html  # what stands in no column is left out
    assert "<code>x</code> | y" in html
    assert html.endswith("<p>end</p>")


HOSTILE = (
    '<img src=x onerror="window.taken=1">',
    "<script>window.taken=1</script>",
    "[a](javascript:window.taken=1)",
    "[a](JaVaScRiPt:window.taken=1)",
    "[a](<java\tscript:window.taken=1>)",
    "[a](data:text/html,<script>window.taken=1</script>)",
    "[a](vbscript:x)",
    "[a](file:///etc/passwd)",
    "[a](//evil.test)",
    "[a](/abridge)",
    "[a](abridge/exchanges)",
    "[a](blob:1)",
    "<javascript:window.taken=1>",
    "![a](data:image/svg+xml,<svg/onload=window.taken=1>)",
    '[a](javascript:x "https")',
    "[a][b]\n\n[b]: javascript:window.taken=1",
)


async def test_what_is_hostile_stays_text(tab: Tab) -> None:
    for text in HOSTILE:
        assert "<a" not in await rendered(tab, text)
        shown = await tab.get("document.body.lastElementChild.textContent")
        assert shown == text.replace("\n\n", "")
    assert await tab.get("document.querySelectorAll('body img, body script').length") == 1
    assert await tab.get("window.taken") is None
    assert tab.complaints == []


async def test_an_image_is_not_loaded_but_linked(tab: Tab) -> None:
    before = len(tab.requests)
    html = await rendered(tab, '![a cat](https://x.test/cat.png "t") ![](https://x.test/b)')
    assert "<img" not in html
    assert f'<a href="https://x.test/cat.png" title="https://x.test/cat.png" {LINK}>a cat' in html
    assert ">https://x.test/b</a>" in html
    assert all("x.test" not in url for url in tab.requests[before:])


async def test_a_link_in_a_links_name_is_none(tab: Tab) -> None:
    html = await rendered(tab, "[https://good.test](https://evil.test)")
    assert html.count("<a ") == 1
    assert 'title="https://evil.test/"' in html  # where it leads can be seen


async def test_what_a_text_is_nested_in_has_an_end(tab: Tab) -> None:
    for text in (
        ">" * 5000 + " a",
        "- " * 5000 + "a",
        "*a " * 5000,
        "[" * 5000 + "](",
        "x" + "`" * 9999,
    ):
        await rendered(tab, text)
        depth = (
            "(function deep(e) {return 1 + Math.max(0, ...Array.from(e.children, deep))})"
            "(document.body.lastElementChild)"
        )
        assert await tab.get(depth) < 30
    assert await tab.get("document.body.lastElementChild.textContent") == "x" + "`" * 9999
