"""Test the guard around a summarizer, and when routes are not waited for."""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import aclosing, suppress
from functools import partial
from typing import Any

import pytest
from prometheus_client import CollectorRegistry

from abridge.config.tables import SummarizerSettings
from abridge.core.events import ErrorDetail
from abridge.core.plan import Passage
from abridge.core.usage import SummarizerUsage, Tokens
from abridge.errors import SummarizerError, SummaryWithheld
from abridge.observability.metrics import metrics_for
from abridge.summarizers.call import MAX_PART_CHARS, MAX_SEARCHED_CHARS
from abridge.summarizers.extractive.extract import ExtractiveSummarizer
from abridge.summarizers.guard import (
    BACKOFF_SECONDS,
    Bulkhead,
    GraceBackoff,
    Guard,
    Permit,
)
from abridge.summarizers.review import Review, Reviewer
from abridge.summarizers.summarizer import UserSummarizer
from tests.support.broken import CARELESS, REVIEWS, SUMMARIZERS, TEXT, Closing, Iterator
from tests.support.broken import Summarizer as Broken
from tests.support.servers import until

SPENT = SummarizerUsage(Tokens(3, 2, 5), "small-1")
PASSAGE = Passage("why")


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


class Scripted:
    """A summarizer that yields texts and usage, raises errors and awaits events from a script."""

    name = "scripted"

    def __init__(self, *script: Any) -> None:
        self.script = script
        self.closed = False

    async def summarize(self, passage: Passage) -> AsyncIterator[str | SummarizerUsage]:
        try:
            for step in self.script:
                if isinstance(step, Exception):
                    raise step
                if isinstance(step, asyncio.Event):
                    await step.wait()
                else:
                    yield step
        finally:
            self.closed = True


def guard(review: Review | None = None, clock: Clock | None = None, **settings: Any) -> Guard:
    reviewer = None if review is None else Reviewer(review)
    made = SummarizerSettings(**settings)
    return Guard(made, reviewer=reviewer, bulkhead=Bulkhead(made, clock or Clock()))


async def collect_output(made: Guard, *script: Any) -> list[str | SummarizerUsage]:
    return [piece async for piece in made.summarize(Scripted(*script), PASSAGE)]


async def written(made: Guard, summarizer: Any) -> list[str | SummarizerUsage]:
    return [piece async for piece in made.summarize(summarizer, PASSAGE)]


PAUSED = "the summarizer is not called for 30 s, after 1 failures in a row"


def warnings(caplog: pytest.LogCaptureFixture) -> list[str]:
    """Return the warnings, without the one that a first failure's breaker opened."""
    told = [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]
    return [each for each in told if each != PAUSED]


async def error(made: Guard, *script: Any) -> SummarizerError:
    with pytest.raises(SummarizerError) as caught:
        await collect_output(made, *script)
    return caught.value


def permit(made: Guard) -> Permit:
    admitted = made.admit(Scripted())
    assert isinstance(admitted, Permit)
    return admitted


def test_one_that_runs_in_process_is_never_refused() -> None:
    made = guard(max_in_flight=1, breaker_failures=1)
    permit(made)
    assert refusal(made) == "shed"
    for _ in range(3):
        assert isinstance(made.admit(ExtractiveSummarizer()), Permit)


def test_one_of_a_users_that_says_it_runs_in_process_is_refused_like_others() -> None:
    class Claiming(Scripted):
        in_process = True

    made = guard(max_in_flight=1)
    permit(made)
    refused = made.admit(UserSummarizer(Claiming()))
    assert isinstance(refused, ErrorDetail)
    assert refused.code == "shed"


def refusal(made: Guard) -> str:
    refused = made.admit(Scripted())
    assert isinstance(refused, ErrorDetail)
    return refused.code


# Output


async def test_text_streams_and_usage_comes_last() -> None:
    assert await collect_output(guard(), "So ", "it is.", SPENT) == ["So ", "it is.", SPENT]


async def test_text_is_cleaned() -> None:
    pieces = await collect_output(guard(), "See [this](htt", "p://e.example) <b", ">now</b>.")
    assert "".join(map(str, pieces)) == "See this now."
    assert all(pieces)


async def test_held_back_text_is_released_at_the_end() -> None:
    assert await collect_output(guard(), "**So it ", "is", SPENT) == ["**So it is", SPENT]


async def test_usage_is_reported_once_and_last() -> None:
    assert await collect_output(guard(), SummarizerUsage(), "So it is.", SPENT, " Yes.") == [
        "So it is.",
        " Yes.",
        SPENT,
    ]


async def test_blanks_before_the_first_word_are_left_out() -> None:
    assert await collect_output(guard(), "", "\n ", " \nSo ", "it is. ") == ["So ", "it is. "]


@pytest.mark.parametrize("script", [(), ("",), (" ", "\n"), ("<b></b>", " "), ("![](http://x)",)])
async def test_empty_output_is_a_failure_with_its_cost(script: tuple[str, ...]) -> None:
    failed = await error(guard(), *script, SPENT)
    assert (failed.code, failed.spent, failed.model) == ("empty", SPENT.tokens, SPENT.model)


async def test_text_beyond_the_ceiling_is_not_waited_for() -> None:
    scripted = Scripted("x" * (MAX_PART_CHARS - 1), "yz", asyncio.Event())
    pieces = [piece async for piece in guard().summarize(scripted, PASSAGE)]
    assert sum(len(piece) for piece in pieces if isinstance(piece, str)) == MAX_PART_CHARS
    assert scripted.closed


# Failures


async def test_a_failure_is_reported_with_its_cost() -> None:
    failed = await error(
        guard(), "So ", SummarizerError("upstream_error", "Status 500.", spent=Tokens(1))
    )
    assert (failed.code, str(failed), failed.spent) == ("upstream_error", "Status 500.", Tokens(1))


async def test_a_cost_reported_before_a_failure_is_kept() -> None:
    failed = await error(guard(), SPENT, SummarizerError("upstream_error", "Status 500."))
    assert (failed.spent, failed.model) == (SPENT.tokens, SPENT.model)


async def test_an_exception_of_our_own_is_named_in_the_log_but_never_quoted(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with caplog.at_level(logging.DEBUG):
        failed = await error(guard(), SPENT, ValueError("secret sk-123"))
    assert (failed.code, failed.spent) == ("upstream_error", SPENT.tokens)
    assert "sk-123" not in f"{failed}{caplog.text}"
    assert warnings(caplog) == ["summarizer scripted failed: ValueError"]


async def test_a_note_on_a_failure_of_our_own_is_for_the_log_alone(
    caplog: pytest.LogCaptureFixture,
) -> None:
    noted = SummarizerError("upstream_error", "It is away.")
    noted.add_note("127.0.0.1:9: refused")
    assert str(await error(guard(), noted)) == "It is away."
    cause = "summarizer scripted failed: It is away. (upstream_error)"
    assert warnings(caplog) == [f"{cause}; 127.0.0.1:9: refused"]
    caplog.clear()
    with pytest.raises(SummarizerError):  # notes on a user's error may quote anything
        await written(guard(), UserSummarizer(Scripted(noted)))
    assert warnings(caplog) == [cause]


async def test_a_call_has_a_total_timeout() -> None:
    failed = await error(guard(timeout=0.01), SPENT, "So ", asyncio.Event())
    assert (failed.code, failed.spent) == ("timeout", SPENT.tokens)


async def test_text_that_came_while_the_process_was_stopped_is_in_time() -> None:
    arrived = asyncio.Event()
    summary = asyncio.create_task(collect_output(guard(timeout=0.05), arrived, "So it is."))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    time.sleep(0.1)  # noqa: ASYNC251 -- the process is stopped
    asyncio.get_running_loop().call_later(0, arrived.set)  # read after the timer is due
    assert await summary == ["So it is."]


async def test_an_iterator_that_is_no_generator_is_accepted() -> None:
    class Once:
        name = "once"
        left = True

        def summarize(self, passage: Passage) -> AsyncIterator[str | SummarizerUsage]:
            return self

        def __aiter__(self) -> Once:
            return self

        async def __anext__(self) -> str | SummarizerUsage:
            if not self.left:
                raise StopAsyncIteration
            self.left = False
            return passage_text

    passage_text = "So it is."
    assert [piece async for piece in guard().summarize(Once(), PASSAGE)] == [passage_text]


async def test_leaving_early_closes_the_summarizer() -> None:
    scripted = Scripted("So ", "it is.")
    async with aclosing(guard().summarize(scripted, PASSAGE)) as pieces:
        assert await anext(pieces) == "So "
    assert scripted.closed


# The review


async def test_a_review_sees_each_part_whole_and_may_change_it() -> None:
    seen = []

    async def review(text: str) -> str:
        seen.append(text)
        return text.upper()

    assert await collect_output(guard(review), "So ", "it is.", SPENT) == ["SO IT IS.", SPENT]
    assert seen == ["So it is."]


@pytest.mark.parametrize("verdict", [None, "", " "])
async def test_a_review_may_withhold_a_part_and_its_cost_counts(verdict: str | None) -> None:
    async def review(_: str) -> str | None:
        return verdict

    made = guard(review, breaker_failures=1)
    failed = await error(made, "So it is.", SPENT)
    assert (failed.code, str(failed)) == ("withheld", "The summary was withheld.")
    assert failed.spent == SPENT.tokens
    assert not made.is_open


async def test_a_review_that_fails_shows_nothing() -> None:
    async def review(text: str) -> str:
        raise RuntimeError(text)

    failed = await error(guard(review), "So it is.", SPENT)
    assert (failed.code, failed.spent) == ("withheld", SPENT.tokens)
    assert "So it is" not in str(failed)


async def test_a_review_shares_the_time_of_its_call() -> None:
    async def review(text: str) -> str:
        await asyncio.Event().wait()
        return text

    assert (await error(guard(review, timeout=0.01), "So it is.")).code == "withheld"


# What is broken


@pytest.mark.parametrize(("broken", "cause"), SUMMARIZERS.values(), ids=SUMMARIZERS)
async def test_a_broken_summarizer_fails_and_the_log_says_why_in_one_line(
    broken: Any, cause: str, caplog: pytest.LogCaptureFixture
) -> None:
    made = guard(breaker_failures=1)
    with pytest.raises(SummarizerError) as failed:
        await written(made, UserSummarizer(broken))
    assert failed.value.code in ("upstream_error", "timeout")
    (line,) = warnings(caplog)
    assert line.startswith(f"summarizer {UserSummarizer(broken).name} failed: {cause}")
    assert made.is_open


@pytest.mark.parametrize(("broken", "cause"), REVIEWS.values(), ids=REVIEWS)
async def test_a_broken_review_fails_the_part_and_the_log_names_it(
    broken: Any, cause: str, caplog: pytest.LogCaptureFixture
) -> None:
    made = guard(broken, breaker_failures=1)
    failed = await error(made, "So it is.", SPENT)
    assert failed.code == "withheld"
    assert failed.spent == SPENT.tokens
    (line,) = warnings(caplog)
    assert line.startswith(f"review failed: {cause}")
    assert made.is_open


@pytest.mark.parametrize(("careless", "cause"), CARELESS.values(), ids=CARELESS)
async def test_a_part_is_not_lost_by_what_comes_after_its_text(
    careless: Any, cause: str, caplog: pytest.LogCaptureFixture
) -> None:
    *texts, last = await written(guard(), UserSummarizer(careless))
    if isinstance(last, SummarizerUsage):
        assert last.tokens in (None, Tokens())
        assert last.model in (None, "mini")
    else:
        texts.append(last)
    assert "".join(map(str, texts)) == TEXT
    lines = warnings(caplog)
    assert len(lines) == bool(cause)
    assert all(line.startswith(f"summarizer broken could not be closed: {cause}") for line in lines)


async def test_an_exceptions_traceback_is_logged_at_debug_level(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def review(_: str) -> str:
        raise ValueError("no good")

    with caplog.at_level(logging.DEBUG):
        await error(guard(review), "So it is.")
    warning, trace = caplog.records
    assert warning.getMessage() == "review failed: ValueError: no good"
    assert trace.levelname == "DEBUG"
    assert 'raise ValueError("no good")' in trace.getMessage()


@pytest.mark.parametrize("start", range(30))
async def test_a_message_that_quotes_the_prompt_is_not_logged(
    start: int, caplog: pytest.LogCaptureFixture
) -> None:
    passage = Passage("The reasoning of\n somebody, and what else they think.", before="Earlier.")
    quoted = ValueError(f"{passage.text[start : start + 21]!s} is too long")
    with caplog.at_level(logging.DEBUG), pytest.raises(SummarizerError):
        async for _ in guard().summarize(UserSummarizer(Scripted(quoted)), passage):
            pass
    assert warnings(caplog) == ["summarizer scripted failed: ValueError"]
    assert "somebody" not in caplog.text


@pytest.mark.parametrize("spell", [str, json.dumps, str.encode, ascii])
@pytest.mark.parametrize("kind", [ValueError, partial(SummarizerError, "upstream_error")])
@pytest.mark.parametrize(
    "text",
    [
        "Ich überlege, was für Größen hier möglich wären.",
        "我需要把这些数字全部加起来，然后再除以它们的个数。",
        "PIN 4711",
    ],
)
async def test_nor_is_one_that_spells_the_prompt_another_way(
    text: str,
    kind: Callable[[str], Exception],
    spell: Callable[[str], object],
    caplog: pytest.LogCaptureFixture,
) -> None:
    failing = Scripted(quoted := kind(f"refused: {spell(text)!s}"))
    with caplog.at_level(logging.DEBUG), pytest.raises(SummarizerError):
        async for _ in guard().summarize(UserSummarizer(failing), Passage(text)):
            pass
    assert warnings(caplog) == [f"summarizer scripted failed: {type(quoted).__name__}"]


async def test_half_a_character_is_replaced_and_halves_in_two_pieces_are_joined() -> None:
    broken = UserSummarizer(Scripted("So \ud83d", "\ude00 it \ud800is."))
    assert "".join(map(str, await written(guard(), broken))) == "So 😀 it \ufffdis."


async def test_a_message_is_not_logged_if_the_prompt_is_too_long_to_search(
    caplog: pytest.LogCaptureFixture,
) -> None:
    passage = Passage("a" * (MAX_SEARCHED_CHARS + 1))
    with caplog.at_level(logging.DEBUG), pytest.raises(SummarizerError):
        async for _ in guard().summarize(UserSummarizer(Scripted(ValueError("b"))), passage):
            pass
    assert warnings(caplog) == ["summarizer scripted failed: ValueError"]


async def test_a_reviews_message_that_quotes_the_summary_is_not_logged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def review(text: str) -> str:
        raise ValueError(f"refused: {text}")

    await error(guard(review), "So it is, as they have ", "said all along.")
    assert warnings(caplog) == ["review failed: ValueError"]


async def test_a_long_message_is_cut_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    broken = UserSummarizer(Scripted(ValueError("x" * 10_000)))
    with pytest.raises(SummarizerError):
        await written(guard(), broken)
    assert len(warnings(caplog)[0]) < 400


@pytest.mark.parametrize("stop", [KeyboardInterrupt, SystemExit])
@pytest.mark.parametrize("place", ["summarizer", "review", "aclose"])
def test_what_ends_the_process_is_left_alone(stop: type[BaseException], place: str) -> None:
    class Ending(Closing):
        def __init__(self) -> None:
            super().__init__(end if place == "aclose" else None)

        async def __anext__(self) -> Any:
            return end() if place == "summarizer" else await super().__anext__()

    def end(*_: Any) -> Any:
        raise stop

    async def write() -> None:
        asyncio.get_running_loop().set_exception_handler(lambda *_: None)  # would log it as lost
        made = guard(end if place == "review" else None)
        await written(made, UserSummarizer(Broken(lambda _: Ending())))

    with pytest.raises(stop):
        asyncio.run(write())


class Stubborn:
    """Ignores being cancelled until `gate` is set, as a review or in a summarizer."""

    def __init__(self) -> None:
        self.begun, self.gate = asyncio.Event(), asyncio.Event()

    async def __call__(self, _: str = "") -> str:
        self.begun.set()
        while not self.gate.is_set():
            with suppress(asyncio.CancelledError):
                await self.gate.wait()
        return TEXT

    async def summarize(self, _: Any) -> AsyncIterator[str]:
        yield await self()

    async def close_slowly(self, _: Any) -> AsyncIterator[str]:
        try:
            self.begun.set()
            yield TEXT
            await asyncio.Event().wait()
        finally:
            await self()


class TestCallsThatDoNotStop:
    """They are left behind, and take up a place until they end."""

    @pytest.fixture(autouse=True)
    def hasty(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("abridge.summarizers.guard.CLOSE_SECONDS", 0.01)

    async def test_an_iterator_that_never_closes_costs_no_text(
        self, caplog: pytest.LogCaptureFixture
    ) -> None:
        closing = Broken(lambda _: Closing(asyncio.Event().wait))
        assert await written(guard(), UserSummarizer(closing)) == [TEXT]
        assert warnings(caplog) == ["summarizer broken does not stop and is abandoned"]

    @pytest.mark.parametrize("place", ["summarizer", "review", "aclose"])
    async def test_one_that_ignores_being_cancelled_is_left_behind(
        self, place: str, caplog: pytest.LogCaptureFixture
    ) -> None:
        stubborn = Stubborn()
        made = guard(stubborn if place == "review" else None, max_in_flight=1)
        one = {"summarizer": stubborn.summarize, "aclose": stubborn.close_slowly}.get(
            place, lambda _: Iterator(TEXT)
        )
        task = asyncio.create_task(written(made, UserSummarizer(Broken(one))))
        await stubborn.begun.wait()
        task.cancel()
        await asyncio.wait([task], timeout=20)
        assert task.cancelled()
        assert warnings(caplog) == ["summarizer broken does not stop and is abandoned"]
        assert refusal(made) == "shed"
        stubborn.gate.set()
        await until(lambda: isinstance(made.admit(Scripted()), Permit))

    async def test_one_that_ignores_its_timeout_is_left_behind(
        self, caplog: pytest.LogCaptureFixture
    ) -> None:
        stubborn, made = Stubborn(), guard(max_in_flight=1, timeout=0.01)
        with pytest.raises(SummarizerError, match="took too long"):
            await written(made, UserSummarizer(Broken(stubborn.summarize)))
        assert warnings(caplog)[0] == "summarizer broken does not stop and is abandoned"
        assert refusal(made) == "shed"
        stubborn.gate.set()
        await until(lambda: isinstance(made.admit(Scripted()), Permit))

    async def test_one_that_never_waits_for_anything_runs_into_its_timeout(self) -> None:
        async def generate(_: Any) -> AsyncIterator[str]:
            while True:
                yield ""

        with pytest.raises(SummarizerError) as failed:
            await written(guard(timeout=0.01), UserSummarizer(Broken(generate)))
        assert failed.value.code == "timeout"


# Concurrency


def test_concurrent_calls_are_limited() -> None:
    made = guard(max_in_flight=2)
    first, second = permit(made), permit(made)
    assert made.in_flight == 2
    assert refusal(made) == "shed"
    first.release()
    first.release()
    assert made.in_flight == 1
    permit(made)
    assert refusal(made) == "shed"
    second.release()
    assert made.in_flight == 1


async def test_a_task_cancelled_before_its_first_step_gives_its_permit_back() -> None:
    made = guard(max_in_flight=1)
    admitted = permit(made)
    task = asyncio.create_task(collect_output(made, "So it is."))
    task.add_done_callback(lambda _: admitted.release())
    task.cancel()
    await asyncio.wait([task])
    await asyncio.sleep(0)
    assert made.in_flight == 0


# The breaker

FAIL = SummarizerError("upstream_error", "Status 500.")


async def test_failures_in_a_row_open_the_breaker() -> None:
    made = guard(breaker_failures=3)
    for failure in (FAIL, ValueError(), " "):
        assert not made.is_open
        await error(made, failure)
    assert made.is_open
    assert refusal(made) == "breaker_open"
    assert made.in_flight == 0


async def test_the_log_says_once_that_it_opened(caplog: pytest.LogCaptureFixture) -> None:
    made = guard(breaker_failures=2, breaker_seconds=20)
    told = "the summarizer is not called for 20 s, after 2 failures in a row"
    await error(made, FAIL)
    assert told not in caplog.messages
    await error(made, FAIL)
    await error(made, FAIL)
    assert [each == told for each in warnings(caplog)] == [False, False, True, False]


async def test_what_a_model_writes_opens_no_breaker() -> None:
    made = guard(breaker_failures=2)
    for _ in range(3):
        caught = await error(made, SummarizerError("loop", "Again."))
        assert caught.code == "loop"
    assert not made.is_open


async def test_a_success_between_them_starts_the_count_anew() -> None:
    made = guard(breaker_failures=2)
    await error(made, FAIL)
    await collect_output(made, "So it is.")
    await error(made, FAIL)
    assert not made.is_open


async def test_after_the_pause_one_successful_trial_closes_the_breaker() -> None:
    clock = Clock()
    made = guard(clock=clock, breaker_failures=1, breaker_seconds=30)
    await error(made, FAIL)
    clock.now = 29.9
    assert refusal(made) == "breaker_open"
    clock.now = 30.0
    trial = permit(made)
    assert refusal(made) == "breaker_open"
    await collect_output(made, "So it is.")
    trial.release()
    assert not made.is_open
    permit(made)
    permit(made)


async def test_an_older_call_that_ends_does_not_let_a_second_trial_through() -> None:
    clock = Clock()
    made = guard(clock=clock, breaker_failures=1, breaker_seconds=30)
    older = permit(made)
    await error(made, FAIL)
    clock.now = 30.0
    permit(made)
    older.release()
    assert refusal(made) == "breaker_open"


async def test_a_trial_that_fails_opens_it_for_as_long_again() -> None:
    clock = Clock()
    made = guard(clock=clock, breaker_failures=1, breaker_seconds=30)
    await error(made, FAIL)
    clock.now = 30.0
    trial = permit(made)
    await error(made, FAIL)
    trial.release()
    clock.now = 59.9
    assert refusal(made) == "breaker_open"
    clock.now = 60.0
    permit(made)


async def test_a_cancelled_trial_counts_for_nothing_and_frees_its_place() -> None:
    clock = Clock()
    made = guard(clock=clock, breaker_failures=1, breaker_seconds=30)
    await error(made, FAIL)
    clock.now = 30.0
    trial = permit(made)
    begun = asyncio.Event()
    scripted = Scripted("So ", asyncio.Event())

    async def write() -> None:
        async for _ in made.summarize(scripted, PASSAGE):
            begun.set()

    task = asyncio.create_task(write())
    await begun.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert scripted.closed
    assert made.is_open
    assert refusal(made) == "breaker_open"
    trial.release()
    permit(made)


async def test_cancelled_calls_are_no_failures() -> None:
    made = guard(breaker_failures=1)
    waiting: Awaitable[Any] = collect_output(made, asyncio.Event())
    task = asyncio.ensure_future(waiting)
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert not made.is_open


class TestOneThatRunsInProcess:
    """What it takes is work, bounded by its input; what it waits for is its turn."""

    async def test_it_has_no_timeout(self, monkeypatch: pytest.MonkeyPatch) -> None:
        timeout = 0.01

        def write_slowly(_: Passage) -> Iterator[str]:
            time.sleep(10 * timeout)  # a machine that has much to do
            yield "So it is."

        monkeypatch.setattr("abridge.summarizers.extractive.extract.extract_in_steps", write_slowly)
        for _ in range(SummarizerSettings().breaker_failures + 1):
            text, _ = await written(guard(timeout=timeout), ExtractiveSummarizer())
            assert text == "So it is."

    async def test_its_review_has(self) -> None:
        async def review(_: str) -> str | None:
            await asyncio.Event().wait()

        with pytest.raises(SummarizerError, match="it could not be reviewed") as failed:
            await written(guard(review, timeout=0.01), ExtractiveSummarizer())
        assert failed.value.code == "withheld"

    async def test_a_late_start_does_not_open_the_breaker(
        self, caplog: pytest.LogCaptureFixture
    ) -> None:
        made = guard(breaker_failures=1)
        made.note_late_start(ExtractiveSummarizer())
        assert not made.is_open
        assert not warnings(caplog)
        made.note_late_start(Scripted())
        assert made.is_open
        (line,) = warnings(caplog)
        assert line.endswith("failed: it did not begin within summary.first_token")


class TestAReviewWithItsOwnRules:
    """A review that may take its own time, and whose failures the settings judge."""

    @pytest.fixture
    def registry(self) -> CollectorRegistry:
        return CollectorRegistry()

    def guard(
        self, registry: CollectorRegistry, review: Any, *, settings: Any = None, **rules: Any
    ) -> Guard:
        made = SummarizerSettings(**(settings or {}))
        return Guard(
            made,
            reviewer=Reviewer(review, **{"timeout": 30.0, **rules}),
            metrics=metrics_for(registry),
            bulkhead=Bulkhead(made, Clock()),
        )

    async def test_its_time_begins_when_the_summarizer_is_done(
        self, registry: CollectorRegistry
    ) -> None:
        gate = asyncio.Event()

        async def review(text: str) -> str:
            await gate.wait()
            return text

        made = self.guard(registry, review, settings={"timeout": 0.01})
        writing = asyncio.create_task(collect_output(made, "So it is."))
        await asyncio.sleep(0.2)  # longer than the summarizer's time and the last look
        gate.set()
        assert await writing == ["So it is."]

    async def test_its_time_runs_out(self, registry: CollectorRegistry) -> None:
        failed = await error(self.guard(registry, _hang, timeout=0.01), "So it is.", SPENT)
        assert (failed.code, failed.spent) == ("withheld", SPENT.tokens)
        assert outcomes(registry) == {"timeout": 1}

    @pytest.mark.parametrize("stops", [False, True])
    async def test_what_is_flagged_says_whether_the_rest_is_stopped(
        self, registry: CollectorRegistry, *, stops: bool
    ) -> None:
        made = self.guard(registry, _flag, stops_on_flag=stops)
        failed = await error(made, "So it is.")
        assert isinstance(failed, SummaryWithheld)
        assert failed.stops is stops
        assert outcomes(registry) == {"withheld": 1}

    @pytest.mark.parametrize("broken", [entry[0] for entry in REVIEWS.values()], ids=REVIEWS)
    async def test_one_that_fails_does_not_stop_the_rest(
        self, registry: CollectorRegistry, broken: Any
    ) -> None:
        failed = await error(self.guard(registry, broken, stops_on_flag=True), "So it is.")
        assert isinstance(failed, SummaryWithheld)
        assert not failed.stops
        assert outcomes(registry) == {"failed": 1} or outcomes(registry) == {"timeout": 1}

    @pytest.mark.parametrize("broken", [entry[0] for entry in REVIEWS.values()], ids=REVIEWS)
    async def test_what_cannot_be_checked_is_shown_where_the_settings_say_so(
        self, registry: CollectorRegistry, broken: Any
    ) -> None:
        made = self.guard(registry, broken, shows_on_failure=True, settings={"breaker_failures": 1})
        assert await collect_output(made, "So ", "it is.", SPENT) == ["So it is.", SPENT]
        assert not made.is_open

    async def test_what_takes_too_long_is_shown_where_the_settings_say_so(
        self, registry: CollectorRegistry
    ) -> None:
        made = self.guard(registry, _hang, shows_on_failure=True, timeout=0.01)
        assert await collect_output(made, "So it is.") == ["So it is."]
        assert outcomes(registry) == {"timeout": 1}

    async def test_what_is_flagged_is_withheld_all_the_same(
        self, registry: CollectorRegistry
    ) -> None:
        failed = await error(self.guard(registry, _flag, shows_on_failure=True), "So it is.")
        assert failed.code == "withheld"

    async def test_a_verdict_that_comes_late_still_counts(
        self, registry: CollectorRegistry
    ) -> None:
        async def flag_when_cancelled(_: str) -> None:
            with suppress(asyncio.CancelledError):
                await asyncio.Event().wait()

        made = self.guard(registry, flag_when_cancelled, shows_on_failure=True, timeout=0.01)
        assert (await error(made, "So it is.")).code == "withheld"

    async def test_a_failing_one_is_logged_once_until_it_answers_again(
        self, registry: CollectorRegistry, caplog: pytest.LogCaptureFixture
    ) -> None:
        answers: list[Any] = [ValueError, ValueError, "So it is.", ValueError]

        async def review(_: str) -> str:
            answer = answers.pop(0)
            if answer is ValueError:
                raise answer
            return str(answer)

        made = self.guard(registry, review, shows_on_failure=True)
        for _ in range(4):
            assert await collect_output(made, "So it is.") == ["So it is."]
        assert warnings(caplog) == ["review failed: ValueError; parts are shown without it"] * 2
        assert outcomes(registry) == {"failed": 3, "passed": 1}

    async def test_a_summarizer_that_fails_is_not_reviewed(
        self, registry: CollectorRegistry
    ) -> None:
        made = self.guard(registry, _flag, shows_on_failure=True)
        failed = await error(made, "So ", ValueError())
        assert failed.code == "upstream_error"
        assert outcomes(registry) == {}

    async def test_a_review_that_is_given_up_is_counted_as_cancelled(
        self, registry: CollectorRegistry
    ) -> None:
        begun = asyncio.Event()

        async def review(_: str) -> str:
            begun.set()
            return await _hang(_)

        writing = asyncio.create_task(collect_output(self.guard(registry, review), "So it is."))
        await begun.wait()
        writing.cancel()
        with suppress(asyncio.CancelledError):
            await writing
        assert outcomes(registry) == {"cancelled": 1}

    def test_reviews_of_what_runs_in_process_are_bounded(self, registry: CollectorRegistry) -> None:
        made = self.guard(registry, _hang, settings={"max_in_flight": 1})
        assert isinstance(made.admit(ExtractiveSummarizer()), Permit)
        assert isinstance(made.admit(ExtractiveSummarizer()), ErrorDetail)


async def _hang(_: str) -> str:
    await asyncio.Event().wait()
    raise AssertionError


async def _flag(_: str) -> None:
    return None


def outcomes(registry: CollectorRegistry) -> dict[str, float]:
    """Return how many reviews there were by outcome."""
    return {
        sample.labels["outcome"]: sample.value
        for metric in registry.collect()
        for sample in metric.samples
        if sample.name == "abridge_review_seconds_count"
    }


class TestGraceBackoff:
    def setup_method(self) -> None:
        self.now = 0.0
        self.backoff = GraceBackoff(lambda: self.now)

    def miss(self, *times: float, route: str = "a") -> None:
        for self.now in times:
            self.backoff.note(route, missed=True)

    def waits(self, now: float, route: str = "a") -> bool:
        self.now = now
        return self.backoff[route].admits

    def test_two_misses_in_a_row_suspend_waiting_on_a_route(self) -> None:
        self.miss(0.0)
        assert self.waits(1.0)
        self.miss(1.0)
        assert not self.waits(2.0)
        assert not self.waits(0.9 + BACKOFF_SECONDS)
        assert self.waits(1.0 + BACKOFF_SECONDS)

    def test_a_summary_in_time_resets_the_count(self) -> None:
        self.miss(0.0)
        self.backoff.note("a", missed=False)
        self.miss(1.0)
        assert self.waits(2.0)

    def test_the_first_miss_after_the_pause_starts_another(self) -> None:
        self.miss(0.0, 0.0, BACKOFF_SECONDS)
        assert not self.waits(BACKOFF_SECONDS + 1)

    def test_misses_without_grace_do_not_extend_the_pause(self) -> None:
        self.miss(0.0, 0.0, 10.0, 20.0)
        assert self.waits(BACKOFF_SECONDS)

    def test_routes_are_independent(self) -> None:
        self.miss(0.0)
        self.miss(0.0, route="b")
        self.miss(0.0)
        assert not self.waits(1.0)
        assert self.waits(1.0, route="b")
