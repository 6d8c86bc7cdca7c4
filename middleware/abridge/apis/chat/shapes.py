"""What is known of Chat Completions where raw reasoning is hidden; the rest is dropped.

What leaves this module is understood: a chunk holds the fields of `CHUNK` only, a completion those
of `COMPLETION`. Those are openai-openapi's `CreateChatCompletionStreamResponse` and
`CreateChatCompletionResponse`, and the fields of providers that are named here. Log probabilities
stay where their tokens are the text that is shown. Thinking in its texts is still there
(`texts.py`).
"""

from __future__ import annotations

from functools import partial
from typing import Any

from abridge.apis import shapes
from abridge.apis.chat.chunks import HEADER_FIELDS, MAX_CHOICES
from abridge.apis.chat.reasoning import DEFAULT_FIELD, get_delta, get_index, read_answer_text
from abridge.apis.errors import whole_error
from abridge.apis.json import as_object, objects, string
from abridge.apis.logprobs import LOGPROBS, spells
from abridge.apis.markers import is_marked, split_marked
from abridge.apis.openai import respell_error
from abridge.core.conversation import Json
from abridge.providers.catalog import TEXT_FIELDS

_FILE = shapes.fields(
    names="type",
    file=shapes.fields(
        texts="hash name",
        content=shapes.each(
            shapes.by_type(
                {
                    "text": shapes.fields(names="type", texts="text"),
                    "image_url": shapes.fields(
                        names="type", image_url=shapes.fields(addresses="url")
                    ),
                }
            )
        ),
    ),
)
"""A file of the client's that OpenRouter has read (openrouter.ai: guides, PDF inputs)."""


def _annotation(value: Any, drops: shapes.DropCount) -> Any:
    is_file = as_object(value).get("type") == "file"
    return (_FILE if is_file else shapes.ANNOTATION)(value, drops)


_TEXT_FIELDS = shapes.fields(
    names="type", text=shapes.streamed_text, annotations=shapes.each(_annotation)
)


def _text_part(value: Any, drops: shapes.DropCount) -> Any:
    """A text; a chunk of thinking where it is marked so."""
    if not is_marked(value):
        return _TEXT_FIELDS(value, drops)
    drops.drop(value)
    return {"type": "thinking", "thinking": string(value.get("text"))}


_IMAGE = shapes.fields(
    names="type",
    numbers="index",
    image_url=shapes.either(shapes.address, shapes.fields(addresses="url", names="detail")),
)

_CONTENT_PARTS = shapes.each(
    shapes.by_type(
        {
            "": _text_part,  # small servers leave the type out
            **shapes.under("text output_text", _text_part),
            "refusal": shapes.fields(names="type", refusal=shapes.streamed_text),
            "image_url": _IMAGE,
            "thinking": shapes.fields(  # docs.mistral.ai
                names="type",
                thinking=shapes.either(shapes.streamed_text, shapes.each(_TEXT_FIELDS)),
                numbers="closed",
                signature=shapes.opaque_state,
            ),
            "reference": shapes.fields(  # docs.mistral.ai
                names="type", reference_ids=shapes.each(shapes.name_or_number)
            ),
        }
    )
)

_STATE = shapes.fields(  # ai.google.dev: thought signatures
    google=shapes.fields(thought_signature=shapes.opaque_state)
)

_FUNCTION = shapes.fields(name=shapes.call_name, arguments=shapes.streamed_json)

_CALL = shapes.fields(
    names="id type",
    numbers="index",
    function=_FUNCTION,
    custom=shapes.fields(name=shapes.call_name, input=shapes.streamed_text),
    extra_content=_STATE,
)

_AUDIO = shapes.fields(
    names="id", numbers="expires_at", data=shapes.opaque, transcript=shapes.streamed_text
)

_detail = partial(
    shapes.fields, names="type id format", numbers="index", signature=shapes.opaque_state
)

_TEXT_DETAIL = _detail(text=shapes.streamed_text)

_REASONING_DETAIL = shapes.by_type(  # openrouter.ai: reasoning tokens
    {
        **dict.fromkeys(("", "reasoning.text"), _TEXT_DETAIL),
        "reasoning.summary": _detail(summary=shapes.streamed_text),
        "reasoning.encrypted": _detail(data=shapes.opaque_state),
    }
)

_THINKING_BLOCK = shapes.fields(  # LiteLLM's
    shapes.under("data signature", shapes.opaque_state),
    names="type id",
    numbers="index",
    thinking=shapes.streamed_text,
)

_source = partial(
    shapes.fields,
    shapes.under("id index refer", shapes.name_or_number),
    texts="title content text date last_updated publish_date snippet source site_name media query",
    addresses="url link icon image_url origin_url",
)

_SOURCE = _source(numbers="score height width")
"""A page or an image that was found (docs.perplexity.ai; docs.z.ai; Alibaba Model Studio)."""

_SOURCES = shapes.each(_SOURCE)

_RETRIEVED = _source(
    shapes.under("filepath", shapes.text),
    names="filter_reason",
    numbers="score height width rerank_score original_search_score data_source_index",
    chunk_id=shapes.name_or_number,
    search_queries=shapes.each(shapes.text),
)

_CONTEXT = shapes.fields(
    shapes.under("citations all_retrieved_documents", shapes.each(_RETRIEVED)), texts="intent"
)
"""Azure's own data (learn.microsoft.com: foundry/openai/references/on-your-data)."""

_EXECUTED_TOOL = shapes.fields(
    shapes.under("type name", shapes.call_name),
    numbers="index",
    arguments=shapes.json_text,
    texts="output",
    search_results=shapes.fields(results=_SOURCES, images=shapes.each(shapes.address)),
)
"""What a tool of the server's did (console.groq.com: docs/compound)."""

_MESSAGE_FIELDS = shapes.fields(
    dict.fromkeys(TEXT_FIELDS, shapes.streamed_text),
    names="role name",
    numbers="end_turn",  # Azure
    content=shapes.either(shapes.streamed_text, _CONTENT_PARTS),
    refusal=shapes.streamed_text,
    tool_calls=shapes.each(_CALL),
    function_call=_FUNCTION,
    audio=_AUDIO,
    annotations=shapes.each(_annotation),
    context=_CONTEXT,
    executed_tools=shapes.each(_EXECUTED_TOOL),
    images=shapes.each(_IMAGE),  # OpenRouter, Gemini
    extra_content=_STATE,
    reasoning_details=shapes.each(_REASONING_DETAIL),
    thinking_blocks=shapes.each(_THINKING_BLOCK),
)


def _message(value: Any, drops: shapes.DropCount) -> Any:
    """A message, or a delta. A content that is marked as thinking is reasoning."""
    message = _MESSAGE_FIELDS(value, drops)
    if not is_marked(value):
        return message
    drops.drop(value)
    message = {**message, "role": "assistant"}
    if not (content := message.get("content")):
        return message
    thinking, rest = split_marked(read_answer_text(content))
    field = next(filter(message.get, TEXT_FIELDS), DEFAULT_FIELD)
    return {**message, "content": rest or None, field: string(message.get(field)) + thinking}


_choice_fields = partial(
    shapes.fields,
    shapes.under("stop_reason matched_stop", shapes.stop_sequence),  # vLLM, SGLang
    names="finish_reason native_finish_reason",  # the latter is OpenRouter's
    numbers="index seed",
    error=whole_error,  # OpenRouter
    content_filter_results=shapes.FILTER_RESULTS,  # Azure
    content_filter_offsets=shapes.figures,
    logprobs=shapes.fields(shapes.under("content refusal", LOGPROBS)),
)


def _choices(place: str) -> shapes.Shape:
    """The choices of a chunk, which say what they do in a `delta`, or of a completion, in a
    `message`. The log probabilities of each are of just the text that it says."""
    shape = _choice_fields({place: _message})

    def rebuild_choice(value: Any, drops: shapes.DropCount) -> Any:
        choice = shape(value, drops)
        given = as_object(as_object(choice).get("logprobs"))
        if not given:
            return choice
        said = as_object(choice.get(place))
        texts = {"content": read_answer_text(said.get("content")), "refusal": said.get("refusal")}
        if any(given.values()):
            if all(spells(objects(given[key]), string(texts[key])) for key in given):
                return choice
            drops.drop(given)
        return {**choice, "logprobs": None}

    return shapes.each(rebuild_choice)


_MODERATED = shapes.fields(
    names="type model", results=shapes.each(shapes.fields(shapes.MODERATION_RESULT))
)

_answer = partial(
    shapes.fields,
    shapes.PADDING,
    shapes.under("model provider", shapes.proper_name),  # the latter is OpenRouter's
    shapes.under("time_info sla_metrics", shapes.figures),  # Cerebras, Z.ai
    shapes.under("search_results images web_search", _SOURCES),  # Perplexity, Z.ai
    names="id object system_fingerprint service_tier request_id",
    numbers="created",
    usage=shapes.figures,
    usage_breakdown=partial(shapes.figures, names=("model",)),  # Groq
    metadata=shapes.fields(names="weight_version"),  # SGLang
    moderation=shapes.fields(shapes.under("input output", _MODERATED)),
    error=whole_error,
    citations=shapes.each(shapes.either(shapes.address, _SOURCE)),  # docs.perplexity.ai; xAI
    related_questions=shapes.each(shapes.text),
    search_info=shapes.fields(search_results=_SOURCES),  # Alibaba
    prompt_filter_results=shapes.each(  # Azure
        shapes.fields(numbers="prompt_index", content_filter_results=shapes.FILTER_RESULTS)
    ),
    x_groq=shapes.fields(names="id", numbers="seed", usage=shapes.figures),
)

CHUNK = _answer(choices=_choices("delta"))

COMPLETION = _answer(choices=_choices("message"))


# An answer of what is known


class ChatRebuilder:
    """Rebuild one answer, streamed or whole."""

    def __init__(self, drops: shapes.DropCount | None = None) -> None:
        self.drops = drops or shapes.DropCount()
        self._thinks: dict[int, bool] = {}  # whether a choice's last role is that of thinking

    def rebuild_chunk(self, chunk: Json) -> Json | None:
        """Rebuild a chunk that is arranged, each of whose choices says what it does in a delta;
        None if nothing is left of it."""
        if choices := objects(chunk.get("choices")):
            chunk = {**chunk, "choices": list(map(self._with_role, choices))}
        rebuilt: Json = CHUNK(chunk, self.drops)
        says = rebuilt.get("choices") or any(rebuilt[key] for key in rebuilt.keys() - HEADER_FIELDS)
        return rebuilt if says else None

    def rebuild_completion(self, completion: Json) -> Json:
        """Rebuild a whole completion that is arranged."""
        rebuilt: Json = COMPLETION(completion, self.drops)
        return rebuilt

    def _with_role(self, choice: Json) -> Json:
        """Return a choice whose delta names the role of thinking, which holds until another
        comes."""
        delta, lane = get_delta(choice), get_index(choice)
        if role := delta.get("role"):
            self._thinks[lane] = is_marked({"role": role})
        if role or not (self._thinks.get(lane) and delta.get("content")):
            return choice
        return {**choice, "delta": {**delta, "role": "thinking"}}

    def arrange_completion(self, completion: Json) -> Json:
        """Return a whole completion in which what each choice says is its message."""
        arranged = self.arrange(completion)
        choices = list(map(_with_message, objects(arranged.get("choices"))))
        return {**arranged, "choices": choices} if choices else arranged

    def arrange(self, answer: Json) -> Json:
        """Return an answer without choices that no request can ask for: each takes memory."""
        given = answer.get("choices")
        if not given or not isinstance(given, list):
            return respell_error(answer)
        asked = [choice for choice in objects(given) if 0 <= get_index(choice) < MAX_CHOICES]
        known = asked[:MAX_CHOICES]  # some may have one index
        self.drops.count += len(given) - len(known)
        return {**answer, "choices": known}


def _with_message(choice: Json) -> Json:
    """Return a choice of a completion with a delta in the place of a missing message."""
    if "delta" not in choice or isinstance(choice.get("message"), dict):
        return choice
    others = {key: choice[key] for key in choice if key != "delta"}
    return {**others, "message": choice["delta"]}
