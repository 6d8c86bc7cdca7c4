"""What is told of one exchange: the summary first, then the answer, then what it took."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from abridge.sidecar.demo.model import scripted_model
from abridge.sidecar.demo.script import QUESTION
from tests.sidecar.page.asking import OVER, RECORDED, Model, Open, ask_question, figures, gated
from tests.sidecar.page.chromium import Tab
from tests.support.streams import THOUGHT, message_item, reasoning_item, responses_stream
from tests.support.summarizers import Scripted
from tests.support.upstream import Answer, Step

LONG = "\n\n".join(f"Line {number} of a long answer." for number in range(60))
TITLE = "**Adding up**\n\nThe numbers are odd, so I add them."
AGREEING = """Array.from(document.querySelectorAll('#exchanges [data-figure]')).every((dd) =>
  document.querySelector(`.bill dd[data-figure="${dd.dataset.figure}"]`)?.textContent
    === dd.textContent)"""
"""The bill says of each figure what the list says."""


async def top(tab: Tab, selector: str) -> float:
    box = f"document.querySelector('{selector}').getBoundingClientRect()"
    return float(await tab.get(f"{box}.top + scrollY"))


async def seen(tab: Tab, selector: str) -> bool:
    return bool(await tab.get(f"document.querySelector('{selector}').checkVisibility()"))


class TestSummary:
    async def test_a_line_says_what_the_model_is_at_and_shuts_the_parts_beneath_it(
        self, page: Open
    ) -> None:
        gate = asyncio.Event()
        async with page(Model(Answer(gated(gate, thought=THOUGHT * 8))), Scripted(TITLE)) as tab:
            await ask_question(tab)
            await tab.until("document.querySelector('#living').textContent === 'Adding up'")
            assert await tab.get("document.querySelector('#living').ariaLive") == "polite"
            assert not await tab.get("document.querySelector('#time').closest('[aria-live]')")
            await tab.until("parseFloat(document.querySelector('#time').textContent) > 0.1")
            assert await seen(tab, "#summary h3")
            for expanded in ("false", "true"):
                await tab.get("document.querySelector('#open').focus()")
                await tab.press("Enter")
                assert await tab.get("document.querySelector('#open').ariaExpanded") == expanded
                assert await seen(tab, "#summary h3") == (expanded == "true")
            gate.set()
            await tab.until("document.querySelector('#living').textContent.startsWith('Thought')")
            await tab.until(RECORDED)
            assert await seen(tab, "#summary h3")
            assert not await seen(tab, "#thinking")

    async def test_a_row_of_the_list_is_one_line_and_opens_to_its_figures(self, page: Open) -> None:
        quick = responses_stream([reasoning_item(0, THOUGHT * 8), message_item(1, "Hello.")])
        slow: list[Step] = [*quick[:-4], 0.3, *quick[-4:]]
        async with page(Model(Answer(slow)), Scripted(TITLE)) as tab:
            await tab.size(1440, 900)
            await ask_question(tab)
            await tab.until(RECORDED)
            assert " instead of " in await tab.text("#exchanges .came summary")
            shut = float(await tab.get("document.querySelector('#exchanges li').offsetHeight"))
            assert shut < 48
            assert not await seen(tab, "#exchanges dd")
            await tab.click("#exchanges .came summary")
            assert await seen(tab, "#exchanges dd")
            assert "Responses" in await tab.words("#exchanges .came")

    async def test_it_shows_its_beginning_once_it_is_over(self, page: Open) -> None:
        gate, written = asyncio.Event(), Scripted(f"{TITLE}\n\n{'So it is. ' * 60}")
        async with page(Model(Answer(gated(gate, thought=THOUGHT * 30))), written) as tab:
            await tab.size(390, 400)
            await ask_question(tab)
            await tab.until("document.querySelector('#summary').scrollTop > 0")
            gate.set()
            await tab.until(RECORDED)
            assert await tab.get("document.querySelector('#summary').scrollTop") == 0
            assert (
                await tab.get("document.querySelector('#summary').className")
                == "flow clipped-below"
            )

    async def test_it_comes_before_thinking_where_the_window_is_narrow(self, page: Open) -> None:
        async with page(Model(Answer(gated(asyncio.Event())))) as tab:
            await tab.size(390, 844)
            await tab.open(await tab.get("location.href.replace(/#.*/, '') + '?narrow'"))
            await tab.until("document.querySelector('#model').value")
            await ask_question(tab)
            await tab.until("document.body.dataset.state === 'thinking'")
            assert await top(tab, "#summary-box") < await top(tab, "#raw") < 844
            assert not await seen(tab, "#thinking")
            await tab.click("#raw summary")
            assert await seen(tab, "#thinking")

    async def test_thinking_stands_beside_it_where_there_is_room(self, page: Open) -> None:
        async with page(Model(Answer(gated(asyncio.Event())))) as tab:
            await tab.size(1440, 900)
            await ask_question(tab)
            await tab.until("document.body.dataset.state === 'thinking'")
            await tab.get("document.querySelector('#raw').open = true")
            assert await top(tab, "#summary-box") == await top(tab, "#raw")
            beside = await top(tab, "#answer-box")
            await tab.click("#raw summary")
            await tab.until("!document.querySelector('#raw').open")
            assert await top(tab, "#raw") > await top(tab, "#summary-box")
            assert await top(tab, "#answer-box") > beside

    async def test_it_does_not_cover_what_stands_below_when_scrolled(self, page: Open) -> None:
        async with page(Model(Answer(gated(asyncio.Event(), answer=LONG)))) as tab:
            await tab.size(1440, 900)
            await ask_question(tab)
            await tab.until("document.body.dataset.state === 'thinking'")
            await tab.get("document.querySelector('#raw').open = true")
            await tab.get("document.querySelector('.exchanges').scrollIntoView()")
            bottom = "document.querySelector('#raw').getBoundingClientRect().bottom"
            assert await tab.get(f"{bottom} + scrollY") <= await top(tab, ".receipt")

    async def test_edges_fade_where_a_text_is_clipped(self, page: Open) -> None:
        async with page(Model(Answer(gated(asyncio.Event(), thought=THOUGHT * 30)))) as tab:
            await ask_question(tab)
            await tab.get("document.querySelector('#raw').open = true")
            box = "document.querySelector('#thinking')"
            await tab.until(f"{box}.classList.contains('clipped-above')")
            await tab.get(f"{box}.scrollTop = 0")
            await tab.until(f"{box}.className === 'flow clipped-below'")
            assert "gradient" in await tab.get(f"getComputedStyle({box}).maskImage")


class TestQuestion:
    async def test_the_form_folds_away_while_it_is_answered(self, page: Open) -> None:
        gate = asyncio.Event()
        async with page(Model(Answer(gated(gate)))) as tab:
            assert not await seen(tab, "#panes")
            await ask_question(tab, "How many?")
            await tab.until("document.body.dataset.state === 'thinking'")
            assert not await seen(tab, "#form")
            assert await tab.text("#asked") == "How many?"
            gate.set()
            await tab.until("!document.querySelector('#new').hidden")
            assert not await seen(tab, "#stop")
            await tab.click("#new")
            assert await seen(tab, "#form")
            assert await tab.get("getSelection().toString()") == "How many?"

    async def test_the_answer_comes_into_sight(self, page: Open) -> None:
        gate = asyncio.Event()
        async with page(Model(Answer(gated(gate, answer=LONG)))) as tab:
            await tab.size(390, 600)
            await ask_question(tab, "How many? " * 20)
            await tab.until("document.body.dataset.state === 'thinking'")
            gate.set()
            await tab.until(f"{OVER} && Math.abs({ANSWER_TOP} - 24) < 2")
            assert await tab.get("scrollY") > 0

    async def test_whoever_scrolls_is_left_where_they_are(self, page: Open) -> None:
        gate = asyncio.Event()
        async with page(Model(Answer(gated(gate, answer=LONG)))) as tab:
            await tab.size(390, 600)
            await ask_question(tab, "How many? " * 20)
            await tab.until("document.body.dataset.state === 'thinking'")
            await tab.get("scrollTo(0, 40)")
            await tab.get("new Promise((done) => setTimeout(done, 100))")
            gate.set()
            await tab.until(OVER)
            assert await tab.get("scrollY") == 40


ANSWER_TOP = "document.querySelector('#answer-box').getBoundingClientRect().top"


class TestFigures:
    async def test_the_headline_says_how_much_sooner_there_was_something_to_read(
        self, page: Open
    ) -> None:
        gate = asyncio.Event()
        async with page(Model(Answer(gated(gate, thought=THOUGHT * 8))), Scripted(TITLE)) as tab:
            await ask_question(tab)
            await tab.until("document.querySelector('#headline').textContent.includes('counting')")
            gate.set()
            await tab.until(RECORDED)
            await tab.until("document.querySelector('#times dd').textContent !== '–'")
            values = await figures(tab)
            assert await tab.text("#headline") == (
                f"First readable text after {values['first']} instead of {values['wait']}, "
                "the wait for the answer"
            )

    @pytest.mark.parametrize("writer", [None, Scripted(), Scripted(spent=None)])
    async def test_the_bill_and_the_list_agree(self, page: Open, writer: Scripted | None) -> None:
        async with page(scripted_model(0), writer) as tab:
            await tab.until("document.querySelector('#model').value")
            await ask_question(tab, QUESTION)
            await tab.until(RECORDED)
            await tab.until("!document.querySelector('.bill').textContent.includes('≈')")
            items = "document.querySelectorAll('#exchanges [data-figure]')"
            listed = dict(
                await tab.get(f"Array.from({items}, (dd) => [dd.dataset.figure, dd.textContent])")
            )
            assert set(listed) >= {"first", "wait", "held", "seconds", "model"}
            await tab.until(AGREEING)  # the bill may learn of the record after the list
            billed = await figures(tab)
            assert listed.items() <= billed.items()
            units = {value.split(" ")[-1] for value in billed.values() if value != "not reported"}
            assert units >= {"s", "tokens", "parts"}

    async def test_all_rows_of_the_list_have_one_scale(self, page: Open) -> None:
        quick = responses_stream([reasoning_item(0, THOUGHT), message_item(1, "Hello.")])
        slow: list[Step] = [*quick[:6], 0.6, *quick[6:]]
        async with page(Model(Answer(quick), Answer(slow))) as tab:
            for number in (1, 2):
                await ask_question(tab)
                await tab.until(f"document.querySelectorAll('#exchanges li').length === {number}")
            widths = "Array.from(document.querySelectorAll('#exchanges .bars .thinking'), WIDTH)"
            slow_width, quick_width = await tab.get(
                widths.replace("WIDTH", "(bar) => parseFloat(bar.style.width)")
            )
            assert slow_width > 3 * quick_width
            scales = (
                "new Set(Array.from(document.querySelectorAll('#exchanges .axis'), COUNT)).size"
            )
            count = "(axis) => axis.childElementCount"
            assert await tab.get(scales.replace("COUNT", count)) == 1

    async def test_what_a_bar_means_is_told_to_mouse_and_keyboard(self, page: Open) -> None:
        async with page(
            Model(Answer(gated(asyncio.Event(), thought=THOUGHT * 8))), Scripted(TITLE)
        ) as tab:
            await ask_question(tab)
            await tab.until("document.querySelector('#now .part').ariaLabel.includes('Adding up')")
            assert await tab.get("document.querySelectorAll('.summary .legend li').length") == 5
            assert await seen(tab, ".legend li:has(.thinking)")
            assert not await seen(tab, ".legend li:has(.answer)")
            sizes = await tab.get(
                "Array.from(document.querySelectorAll('#now .part'), (bar) => "
                "[bar.offsetWidth, bar.offsetHeight])"
            )
            assert all(width >= 8 and height >= 12 for width, height in sizes)
            await tab.get("document.querySelector('#now .timeline').focus()")
            await tab.press("ArrowRight")
            assert (await tab.text("#now .tip")).startswith("Thinking, ")
            await tab.press("ArrowRight")
            assert (await tab.text("#now .tip")).startswith("Part 1: Adding up, ")
            focused = "document.activeElement.ariaLabel"
            await tab.get("new Promise((done) => setTimeout(done, 600))")  # it is redrawn meanwhile
            assert (await tab.get(focused)).startswith("Part 1: Adding up")
            await tab.get("document.activeElement.blur()")
            assert not await seen(tab, "#now .tip")


class TestFailures:
    async def test_a_summary_that_failed_is_told_apart_and_tried_again(self, page: Open) -> None:
        output = [reasoning_item(0, THOUGHT), message_item(1, "Hello.")]
        writer = Scripted(error=ConnectionError("no"), text="")
        model = Model(Answer(responses_stream(output)))
        async with page(model, writer) as tab:
            await ask_question(tab)
            await tab.until("document.querySelector('#summary-failed').checkVisibility()")
            await tab.until(OVER)
            assert (await tab.text("#summary-failed p")).startswith("The summary failed: ")
            assert not await seen(tab, "#answer-failed")
            writer.error, writer.text = None, TITLE
            await tab.click("#summary-failed button")
            await tab.until("document.querySelector('#summary .part')")
            await tab.until(OVER)
            assert not await seen(tab, "#summary-failed")

    @pytest.mark.parametrize(
        ("first", "box", "words"),
        [
            (
                Answer(
                    responses_stream(
                        [reasoning_item(0, THOUGHT), message_item(1, "Hel")],
                        status="failed",
                        error={"code": "server_error", "message": "It fell over."},
                    )
                ),
                "#answer-failed",
                "The answer failed: It fell over.",
            ),
            (
                Answer.json({"error": {"message": "It is full."}}, 503),
                "#trouble",
                "No answer came. The model’s server failed (503). Reason: It is full.",
            ),
        ],
    )
    async def test_an_answer_that_failed_is_told_apart_and_tried_again(
        self, page: Open, first: Any, box: str, words: str
    ) -> None:
        model = Model(first, Answer(responses_stream([message_item(0, "Hello.")])))
        async with page(model) as tab:
            await ask_question(tab)
            await tab.until(f"document.querySelector('{box}').checkVisibility()")
            assert await tab.text(f"{box} p") == words
            assert await tab.text("#summary-failed p") == ""
            await tab.click(f"{box} .retry")
            await tab.until("document.body.dataset.state === 'done'")
            assert await tab.words("#answer") == "Hello."
            assert not await seen(tab, box)
