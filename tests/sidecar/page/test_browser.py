"""The page in a real browser: asked, watched, stopped, and lied to."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator
from typing import Any

import pytest

from abridge.core.plan import Passage
from abridge.core.usage import SummarizerUsage
from abridge.sidecar.demo.model import MODEL_NAME, scripted_model
from abridge.sidecar.demo.script import ANSWER, QUESTION, THINKING
from tests.sidecar.page.asking import (
    OVER,
    RECORDED,
    Model,
    Open,
    ask_question,
    figures,
    gated,
    seconds,
    tokens,
)
from tests.sidecar.page.chromium import CTRL, Tab
from tests.support.servers import until, unused_address
from tests.support.streams import (
    CHAT_USAGE,
    DONE,
    THOUGHT,
    call,
    call_item,
    chat_stream,
    chunk,
    message_item,
    pieces,
    reasoning_item,
    responses_stream,
)
from tests.support.summarizers import Scripted
from tests.support.upstream import Answer, ReceivedRequest

WATCH = """
window.seen = [];
const at = (id) => document.getElementById(id).textContent;
new MutationObserver(() => window.seen.push({
  thinking: at("thinking").length,
  parts: document.querySelectorAll("#summary .part").length,
  answer: at("answer").length,
  model: document.querySelector(".bill [data-figure=model]")?.textContent ?? "",
})).observe(document.querySelector("#panes"), {
  subtree: true, childList: true, characterData: true
});
"""

NAMES = """
window.names = new Set();
new MutationObserver(() => {
  const told = document.getElementById("summary").textContent.includes("odd numbers");
  if (told) window.names.add(document.getElementById("summary-name").textContent);
}).observe(document.querySelector("#panes"), {subtree: true, childList: true, characterData: true});
"""


class Halting(Scripted):
    """Says a sentence, and the rest after the gate is set."""

    async def summarize(self, passage: Passage) -> AsyncIterator[str | SummarizerUsage]:
        yield "**Adding up**\n\nThe numbers are odd. "
        async for shown_text in super().summarize(passage):
            yield shown_text


async def origin(tab: Tab) -> str:
    return str(await tab.get("location.origin"))


def usage_in(stream: str) -> dict[str, Any]:
    """What the last event of a Responses stream says was used."""
    data = [line[6:] for line in stream.splitlines() if line.startswith("data: {")]
    return json.loads(data[-1])["response"]["usage"]  # type: ignore[no-any-return]


async def asked(tab: Tab, times: int) -> AsyncIterator[int]:
    """Ask so many times; yield which it was once each is over and in the list."""
    for number in range(times):
        await ask_question(tab)
        await tab.until(f"{OVER} && document.querySelectorAll('#exchanges li').length > {number}")
        yield number


class TestAsked:
    async def test_parts_come_before_the_answer_and_the_bill_adds_up(self, page: Open) -> None:
        async with page(scripted_model(0.001)) as tab:
            await tab.until(f"document.querySelector('#model').value === '{MODEL_NAME}'")
            await tab.get(WATCH)
            await ask_question(tab, QUESTION)
            await tab.until(RECORDED)
            assert await tab.text("#thinking") == THINKING
            assert await tab.words("#answer") == ANSWER.rstrip("\n")
            seen = await tab.get("window.seen")
            early = [one for one in seen if one["parts"] >= 2 and one["answer"] == 0]
            assert any(one["thinking"] < len(THINKING) for one in early)
            assert all(one["parts"] >= 2 for one in seen if one["answer"])
            assert len({one["model"] for one in seen if "≈" in one["model"]}) > 3

            usage = usage_in(await tab.posted(f"{await origin(tab)}/v1/responses"))
            share = usage["reasoning_summary"]
            assert (
                await tab.get("document.querySelectorAll('#summary h3').length") == share["parts"]
            )
            values = await figures(tab)
            for time in ("first", "wait", "held", "seconds"):
                assert re.fullmatch(r"\d+\.\d+ s", values.pop(time))
            assert values == {
                "input": tokens(usage["input_tokens"]),
                "output": tokens(usage["output_tokens"]),
                "reasoning": tokens(usage["output_tokens_details"]["reasoning_tokens"]),
                "model": tokens(usage["total_tokens"]),
                "summary": tokens(0),
                "share": "0.0 %",
                "total": tokens(usage["total_tokens"]),
                "parts": f"{share['parts']} parts",
            }
            assert "An extract" in await tab.text("#bill-note")

            assert {url.startswith(await origin(tab)) for url in tab.requests} == {True}
            assert tab.complaints == []

    async def test_a_written_summary_is_billed_and_its_hold_is_counted(self, page: Open) -> None:
        gate, writer = asyncio.Event(), Scripted(gate=asyncio.Event())
        gate.set()
        summary = {"grace": 60, "first_token": 60}
        model = Model(Answer(gated(gate)))
        async with page(model, writer, summary=summary) as tab:
            await ask_question(tab)
            await tab.until("document.body.dataset.state === 'holding'")
            held = "document.querySelector('#times [data-figure=held]').textContent"
            await tab.until(f"parseFloat({held}.slice(1)) > 0.3")
            assert await tab.text("#answer") == ""
            assert writer.gate is not None
            writer.gate.set()
            await tab.until(RECORDED)
            await tab.until(
                "!document.querySelector('#times [data-figure=held]').textContent.includes('≈')"
            )
            (exchange,) = (await tab.get("fetch('abridge/exchanges').then((r) => r.json())"))[
                "exchanges"
            ]
            values = await figures(tab)
            assert values["held"] == seconds(exchange["held"])
            assert exchange["held"] > 0.3
            counts = [values[name] for name in ("model", "summary", "total")]
            assert counts == [tokens(81), tokens(15), tokens(96)]
            assert values["share"] == f"{15 / 96:.1%}".replace("%", " %")
            assert (values["input"], values["output"]) == (tokens(11), tokens(70))
            assert await tab.get("document.querySelectorAll('#now .bars .held').length") == 1
            assert "Written by mini" in await tab.text("#bill-note")
            assert tab.complaints == []

    async def test_by_keyboard_alone(self, page: Open) -> None:
        gate = asyncio.Event()
        model = Model(Answer(gated(gate)))
        focused = "document.activeElement.id"
        async with page(model) as tab:
            await tab.until("document.querySelector('#model').value")
            await tab.press("Tab")
            await tab.press("Tab")
            assert await tab.get(focused) == "question"
            await tab.type("How many?")
            await tab.press("Enter", CTRL)
            await tab.until("document.body.dataset.state === 'thinking'")
            assert await tab.get(focused) == "asked"
            await tab.press("Tab")
            assert await tab.get(focused) == "stop"
            outline = "getComputedStyle(document.activeElement).outlineStyle"
            assert await tab.get(outline) == "solid"
            await tab.press("Enter")
            await tab.until("document.body.dataset.state === 'stopped'")
            assert await tab.get(focused) == "new"
            await until(lambda: model.left == 1)
            gate.set()
            await tab.press("Enter", CTRL)
            await tab.until("document.body.dataset.state === 'done'")
            assert await tab.text("#answer") == "Hello."
            assert json.loads(model.requests[-1].body)["input"] == "How many?"

    async def test_escape_stops_it_and_upstream_is_let_go(self, page: Open) -> None:
        model = Model(Answer(gated(asyncio.Event())))
        async with page(model) as tab:
            await ask_question(tab)
            await tab.until("document.querySelector('#thinking').textContent.length > 100")
            await tab.press("Escape")
            await tab.until("document.body.dataset.state === 'stopped'")
            assert "You stopped it." in await tab.text("#answer-notes")
            await until(lambda: model.left == 1)
            await tab.until("document.querySelector('#exchanges .outcome.left')")

    async def test_a_new_question_takes_the_place_of_the_last(self, page: Open) -> None:
        answers = [Answer(gated(asyncio.Event())), Answer(gated(asyncio.Event(), answer="Two."))]
        answers[1].steps = [step for step in answers[1].steps if isinstance(step, bytes)]
        model = Model(*answers)
        async with page(model) as tab:
            await ask_question(tab)
            await tab.until("document.querySelector('#thinking').textContent.length > 100")
            await ask_question(tab)
            await tab.until("document.body.dataset.state === 'done'")
            assert await tab.text("#thinking") == THOUGHT
            assert await tab.text("#answer") == "Two."
            await tab.until("document.querySelectorAll('#exchanges li').length === 2")

    async def test_what_is_missing_is_said_beside_it(self, page: Open) -> None:
        async with page(Model(Answer())) as tab:
            await tab.click("#go")
            assert await tab.text("#question-wrong") == "Type a question first."
            assert await tab.get("document.activeElement.id") == "question"
            await tab.get("document.getElementById('model').value = ' '")
            await ask_question(tab)
            assert await tab.text("#model-wrong") == "Name a model first."

    async def test_a_key_goes_along(self, page: Open) -> None:
        model = Model(Answer(responses_stream([message_item(0, "Hello.")])))
        async with page(model) as tab:
            await tab.get("document.getElementById('key').value = 'sk-1'")
            await ask_question(tab)
            await tab.until("document.body.dataset.state === 'done'")
            assert model.requests[-1].header("authorization") == "Bearer sk-1"


class TestChat:
    async def test_it_says_that_raw_thinking_is_not_to_be_seen(self, page: Open) -> None:
        async with page(scripted_model(0)) as tab:
            await tab.get("document.getElementById('api').value = 'chat'")
            await ask_question(tab, QUESTION)
            await tab.until(RECORDED)
            assert (await tab.text("#thinking")).startswith("Chat Completions has one field")
            assert await tab.get("document.querySelectorAll('#summary h3').length") == 4
            assert await tab.words("#answer") == ANSWER.rstrip("\n")
            assert await tab.text("#summary-name") == "Summary"
            assert (await figures(tab))["summary"] == tokens(0)

    async def test_where_both_are_shown_each_is_in_its_pane(self, page: Open) -> None:
        async with page(scripted_model(0), reasoning={"expose": "both"}) as tab:
            await tab.get("document.getElementById('api').value = 'chat'")
            await ask_question(tab, QUESTION)
            await tab.until(RECORDED)
            assert await tab.text("#thinking") == THINKING
            titles = "Array.from(document.querySelectorAll('#summary h3'), (h3) => h3.textContent)"
            assert await tab.get(f"{titles}[0]")
            assert await tab.get(f"{titles}.length") == 4

    async def test_raw_reasoning_is_not_called_a_summary(self, page: Open) -> None:
        stream = chat_stream(THOUGHT, "Hello.")
        async with page(Model(Answer(stream)), reasoning={"expose": "raw"}) as tab:
            await tab.get("document.getElementById('api').value = 'chat'")
            await tab.get(NAMES)
            await ask_question(tab)
            await tab.until(RECORDED)
            assert "Summary" not in await tab.get("Array.from(window.names)")
            assert (await tab.text("#thinking")).strip() == THOUGHT.strip()
            assert "No summary was made" in await tab.text("#summary .note")

    async def test_each_title_begins_a_part_however_it_comes(self, page: Open) -> None:
        shown_text = (
            "**Odd**\n\nThey are **odd**.\n\n**Even\n* one\n\n**Sum**\n\nIt is 100.\n\n**End**"
        )
        usage = {**CHAT_USAGE, "reasoning_summary": {"total_tokens": 0, "parts": 3}}
        rest = [chunk({"content": "Hello."}), chunk({}, finish="stop"), chunk(usage=usage), DONE]
        answers = [
            Answer([*(chunk({"reasoning_content": piece}) for piece in cut), *rest])
            for cut in (pieces(shown_text, size) for size in (1, 7, 10_000))
        ]
        async with page(Model(*answers), reasoning={"expose": "raw"}) as tab:
            await tab.get("document.getElementById('api').value = 'chat'")
            async for _ in asked(tab, len(answers)):
                values = (
                    "(part) => [part.querySelector('h3').textContent, part.lastChild.textContent]"
                )
                parts = await tab.get(
                    f"Array.from(document.querySelectorAll('#summary .part'), {values})"
                )
                assert [[title, body.strip()] for title, body in parts] == [
                    ["Odd", "They are **odd**.\n\n**Even\n* one"],
                    ["Sum", "It is 100."],
                    ["End", ""],
                ]

    async def test_a_content_may_be_a_list(self, page: Open) -> None:
        contents: list[Any] = [
            [{"type": "thinking", "thinking": [{"type": "text", "text": "Hm. "}]}],
            [{"type": "thinking", "thinking": "Well."}],
            [{"type": "text", "text": "Hel"}, {"type": "reference", "reference_ids": [1]}],
            "lo.",
        ]
        stream = [chunk({"content": content}) for content in contents]
        stream += [chunk({}, finish="stop"), chunk(usage=CHAT_USAGE), DONE]
        async with page(Model(Answer(stream)), reasoning={"expose": "raw"}) as tab:
            await tab.get("document.getElementById('api').value = 'chat'")
            await ask_question(tab)
            await tab.until(OVER)
            assert await tab.text("#thinking") == "Hm. Well."
            assert await tab.text("#answer") == "Hello."

    async def test_it_is_offered_where_there_is_no_responses(self, page: Open) -> None:
        model = Model(Answer(chat_stream(THOUGHT, "Hello.")))
        model.missing = "/responses"
        async with page(model, upstream={"api": "same"}) as tab:
            await ask_question(tab)
            await tab.until("!document.querySelector('#trouble').hidden")
            assert "does not support Responses" in await tab.text("#trouble p")
            await tab.click("#trouble button")
            await tab.until("document.body.dataset.state === 'done'")
            assert await tab.text("#answer") == "Hello."
            assert await tab.get("document.querySelector('#trouble').hidden")


class TestSeveral:
    async def test_what_was_thought_and_said_apart_stays_apart(self, page: Open) -> None:
        output = [
            reasoning_item(0, "I look first."),
            message_item(1, "I look."),
            reasoning_item(2, "Now I know."),
            message_item(3, "It is 100."),
        ]
        steps = [step for frame in responses_stream(output) for step in (frame, 0.002)]
        async with page(Model(Answer(steps))) as tab:
            await ask_question(tab)
            await tab.until(RECORDED)
            assert await tab.text("#thinking") == "I look first.\n\nNow I know."
            assert await tab.words("#answer") == "I look.\n\nIt is 100."
            for picture in ("#now", "#exchanges"):
                bars = f"document.querySelectorAll('{picture} .bars > :is(.thinking, .answer)')"
                box = "bar.getBoundingClientRect()"
                (_, end), (start, _) = await tab.get(
                    f"Array.from({bars}, (bar) => [{box}.top, {box}.bottom])"
                )
                assert end < start

    async def test_a_summary_of_upstreams_own_is_not_said_to_be_abridges(self, page: Open) -> None:
        native = [
            {"type": "summary_text", "text": "**Adding**\n\nOdd ones."},
            {"type": "summary_text", "text": "**Note**: no title."},
        ]
        output = [reasoning_item(0, THOUGHT, summary=native), message_item(1, "Hello.")]
        async with page(Model(Answer(responses_stream(output)))) as tab:
            await ask_question(tab)
            await tab.until(RECORDED)
            titles = "Array.from(document.querySelectorAll('#summary h3'), (h3) => h3.textContent)"
            assert await tab.get(titles) == ["Adding", ""]
            assert await tab.text("#summary .part:last-child p") == "**Note**: no title."
            assert "own server wrote the summary" in await tab.text("#bill-note")
            assert "the model’s own" in await tab.text("#exchanges li")
            await tab.until(
                "!document.querySelector('#times [data-figure=held]').textContent.includes('≈')"
            )
            assert await tab.get("document.querySelectorAll('#now .bars .part').length") == 2


def both_apis() -> Model:
    """Answer first as Responses, then as Chat Completions."""
    output = [reasoning_item(0, THOUGHT), message_item(1, "Hello.")]
    return Model(Answer(responses_stream(output)), Answer(chat_stream(THOUGHT, "Hello.")))


class TestHidden:
    @pytest.mark.parametrize("expose", ["summary", "none"])
    async def test_thinking_that_is_hidden_is_said_to_be(self, page: Open, expose: str) -> None:
        async with page(both_apis(), Scripted(), reasoning={"expose": expose}) as tab:
            async for number in asked(tab, 2):
                one_place = (number, expose) == (1, "summary")
                words = "has one field" if one_place else "shows them to nobody"
                told = f"document.querySelector('#thinking').textContent.includes('{words}')"
                await tab.until(told)
                assert THOUGHT not in await tab.text("body")
                await tab.get("document.getElementById('api').value = 'chat'")

    async def test_what_no_summary_was_due_for_was_not_held(self, page: Open) -> None:
        output = [reasoning_item(0, THOUGHT), message_item(1, "Hello.")]
        async with page(
            Model(Answer(responses_stream(output))), reasoning={"expose": "raw"}
        ) as tab:
            await ask_question(tab)
            await tab.until(RECORDED)
            held = "#times [data-figure=held]"
            await tab.until(f"document.querySelector('{held}').textContent === '–'")
            assert await tab.text(held) == "–"


class TestTold:
    async def test_a_refusal_in_words(self, page: Open) -> None:
        refusals: dict[str, tuple[Any, int]] = {
            "too many requests (429). Reason: Not so fast.": (
                {"error": {"message": "Not so fast"}},
                429,
            ),
            "Reason: Field required.": (
                {"detail": [{"loc": ["body"], "msg": "Field required"}]},
                422,
            ),
            "server failed (503). Reason: It is down.": (
                [{"error": {"message": "It is down."}}],
                503,
            ),
            "The request was refused (403). Reason: Not for you.": (
                {"error": {"message": "Not for you."}},
                403,
            ),
            "The request was refused (400).": ({"error": {"message": ["odd"]}}, 400),
        }
        async with page(Model(*(Answer.json(*refusal) for refusal in refusals.values()))) as tab:
            for words in refusals:
                await ask_question(tab)
                told = f"document.querySelector('#trouble p').textContent.endsWith('{words}')"
                await tab.until(f"!document.querySelector('#trouble').hidden && {told}")

    @pytest.mark.parametrize("listed", [None, {"data": {}}, {"data": [None, {"name": "n"}]}])
    async def test_models_that_are_listed_in_no_known_way(self, page: Open, listed: Any) -> None:
        class Odd(Model):
            def answer(self, request: ReceivedRequest) -> Answer:
                odd = request.path.endswith("/models")
                return Answer.json(listed) if odd else super().answer(request)

        async with page(Odd(Answer())) as tab:
            await tab.get("fetch('v1/models').then(() => new Promise(requestAnimationFrame))")
            assert await tab.text("#model-wrong") == ""
            assert await tab.get("document.querySelectorAll('#models *').length") == 0

    async def test_nothing_asked_yet(self, page: Open) -> None:
        async with page(Model(Answer())) as tab:
            await tab.until("document.querySelector('#elsewhere').open")
            assert "No exchange yet. Ask above" in await tab.text("#elsewhere-title")
            assert f"{await origin(tab)}/v1/responses" in await tab.text("#curl")
            assert not await tab.get("document.querySelector('#stop').checkVisibility()")
            assert not await tab.get("document.querySelector('#panes').checkVisibility()")

    async def test_upstream_is_not_there(self, page: Open) -> None:
        async with page(unused_address()) as tab:
            await tab.until("!document.querySelector('#model-wrong').hidden")
            assert "cannot be listed" in await tab.text("#model-wrong")
            await tab.get("document.getElementById('model').value = 'm'")
            await ask_question(tab)
            await tab.until("!document.querySelector('#trouble').hidden")
            assert "The upstream could not be reached." in await tab.text("#trouble p")
            await tab.until("document.querySelector('#exchanges .outcome.error')")

    async def test_abridge_is_not_there_any_more(self, page: Open) -> None:
        async with page(Model(Answer())) as tab:
            await tab.command(
                "Network.emulateNetworkConditions",
                offline=True,
                latency=0,
                downloadThroughput=-1,
                uploadThroughput=-1,
            )
            await ask_question(tab)
            await tab.until("!document.querySelector('#trouble').hidden")
            assert "Abridge cannot be reached" in await tab.text("#trouble p")
            await tab.until("!document.querySelector('#exchanges-wrong').hidden")

    async def test_how_it_ended(self, page: Open) -> None:
        said, cut = [message_item(0, "Hel")], {"reason": "max_output_tokens"}
        error = {"code": "server_error", "message": "It fell over."}
        ends = [
            (responses_stream(said)[:-3], "failed", "The answer failed: "),
            (
                responses_stream(said, status="incomplete", incomplete_details=cut),
                "incomplete",
                "cut short",
            ),
            (responses_stream(said, status="failed", error=error), "failed", "It fell over."),
            (responses_stream([call_item(0, "look", '{"at": 1}')]), "done", 'look {"at": 1}'),
        ]
        async with page(Model(*(Answer(frames) for frames, _, _ in ends))) as tab:
            async for number in asked(tab, len(ends)):
                _, state, words = ends[number]
                assert await tab.get("document.body.dataset.state") == state
                assert words in await tab.text("#answer-box")

    async def test_a_chats_tool_call(self, page: Open) -> None:
        calls = [call("look", '{"at": 1}')]
        async with page(
            Model(Answer(chat_stream(THOUGHT, calls=calls, finish="tool_calls")))
        ) as tab:
            await tab.get("document.getElementById('api').value = 'chat'")
            await ask_question(tab)
            await tab.until(OVER)
            assert await tab.text("#answer-notes") == 'The model calls a tool: look {"at": 1}'

    async def test_a_summary_that_failed(self, page: Open) -> None:
        writer = Scripted(error=ConnectionError("no"), text="")
        async with page(both_apis(), writer) as tab:
            async for _ in asked(tab, 2):
                assert await tab.text("#summary-failed p") == (
                    "The summary failed: The summarizer failed. The answer is the same without it."
                )
                assert await tab.text("#answer") == "Hello."
                assert "to nobody" not in await tab.text("#thinking")
                await tab.get("document.getElementById('api').value = 'chat'")


TIMERS = """
window.timers = new Set();
window.looks = 0;
const {setTimeout: set, clearTimeout: clear} = window;
window.setTimeout = (...given) => {
  const timer = set(...given);
  window.timers.add(timer);
  window.looks += 1;
  return timer;
};
window.clearTimeout = (timer) => {
  window.timers.delete(timer);
  clear(timer);
};
"""

HOSTILE = """<img src=x onerror="window.taken=1"><script>window.taken=1</script>"""


async def test_a_hostile_model_says_text_and_nothing_else(page: Open) -> None:
    native = [{"type": "summary_text", "text": f"**{HOSTILE}**\n\n{HOSTILE}"}]
    output = [reasoning_item(0, HOSTILE, summary=native), message_item(1, HOSTILE)]
    model = Model(Answer(responses_stream(output)))
    model.names = (HOSTILE,)
    async with page(model) as tab:
        await tab.until("document.querySelector('#model').value")
        await ask_question(tab, HOSTILE)
        await tab.until(RECORDED)
        for pane in ("#thinking", "#answer", "#summary h3", "#summary .part p"):
            assert await tab.text(pane) == HOSTILE
        assert HOSTILE in await tab.text("#exchanges .who")
        assert await tab.get("document.querySelectorAll('main img, main script').length") == 0
        assert await tab.get("window.taken") is None
        assert tab.complaints == []


async def test_the_list_is_looked_after_once_however_often_that_is_begun(page: Open) -> None:
    async with page(Model(Answer())) as tab:
        await tab.get(TIMERS)
        look = "document.dispatchEvent(new Event('visibilitychange'))"
        await tab.get(f"for (let n = 0; n < 20; n += 1) {look}; 0")
        await tab.until("window.looks >= 20")
        assert await tab.get("window.timers.size") == 1
        await tab.get("Object.defineProperty(document, 'hidden', {get: () => true}); 0")
        await tab.get(look)
        assert await tab.get("window.timers.size") == 0


class TestShown:
    async def test_nothing_moves_where_that_is_asked_for(self, page: Open) -> None:
        writer = Halting(gate=asyncio.Event())
        output = [reasoning_item(0, THOUGHT), message_item(1, "Hello.")]
        moving = "getComputedStyle(document.querySelector('.growing p'), '::after').animationName"
        summary = {"grace": 60, "first_token": 60}
        async with page(Model(Answer(responses_stream(output))), writer, summary=summary) as tab:
            await ask_question(tab)
            await tab.until("document.querySelector('.part.growing')")
            assert await tab.get(moving) == "beat"
            await tab.prefer(reduced_motion="reduce")
            assert await tab.get(moving) == "none"
            assert writer.gate is not None
            writer.gate.set()
            await tab.until(OVER)
            assert await tab.get("document.querySelector('.part.growing')") is None

    async def test_nothing_is_wider_than_the_window(self, page: Open) -> None:
        word, scrolled = "unbreakable" * 30, "document.documentElement.scrollWidth"
        late = "document.querySelectorAll('.bars .bar').forEach((bar) => (bar.style.left = '100%'))"
        output = [reasoning_item(0, word), message_item(1, word)]
        async with page(Model(Answer(responses_stream(output)))) as tab:
            for width in (360, 820, 1440):
                await tab.size(width, 800)
                await ask_question(tab, word)
                await tab.until(RECORDED)
                await tab.get(late)  # as what began at the very end
                for letters in (16, 32):
                    await tab.command("Page.setFontSizes", fontSizes={"standard": letters})
                    await tab.until(f"{scrolled} <= {width}")  # the page may still be laid out
                    assert await tab.get(scrolled) <= width

    async def test_every_text_stands_out_from_its_ground(self, page: Open) -> None:
        async with page(scripted_model(0)) as tab:
            await tab.until("document.querySelector('#model').value")
            await ask_question(tab, QUESTION)
            await tab.until(RECORDED)
            for scheme in ("light", "dark"):
                await tab.prefer(color_scheme=scheme)
                assert await tab.get(FAINT) == []


FAINT = """
(() => {
  const canvas = document.createElement("canvas").getContext("2d", {willReadFrequently: true});
  const light = (color) => {
    canvas.fillStyle = color;
    canvas.fillRect(0, 0, 1, 1);
    const [r, g, b] = Array.from(canvas.getImageData(0, 0, 1, 1).data, (one) =>
      one / 255 <= 0.03928 ? one / 255 / 12.92 : ((one / 255 + 0.055) / 1.055) ** 2.4);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const ground = (element) => {
    for (let one = element; one; one = one.parentElement) {
      const color = getComputedStyle(one).backgroundColor;
      if (!color.endsWith(", 0)")) return color;
    }
  };
  const faint = [];
  for (const element of document.querySelectorAll("body *:not(:disabled)")) {
    const texts = Array.from(element.childNodes).filter((node) => node.nodeType === 3);
    const shown = element.checkVisibility() && !element.closest("svg, noscript");
    if (!shown || !texts.some((text) => text.data.trim())) continue;
    const two = [light(getComputedStyle(element).color), light(ground(element))].sort();
    if ((Math.max(...two) + 0.05) / (Math.min(...two) + 0.05) < 4.5) faint.push(element.outerHTML);
  }
  return faint;
})()
"""
