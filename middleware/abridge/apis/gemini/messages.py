"""Write a request's messages as contents: the user's, the model's, and the results of calls.

Each content is a list of parts. A result names the function whose call it answers.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import defaultdict, deque
from collections.abc import Iterator, Sequence
from itertools import count
from mimetypes import guess_type
from typing import NamedTuple
from urllib.parse import urlsplit

from abridge.apis.gemini.reasoning import current_steps, mark_unsigned, read_state
from abridge.apis.media import PDF_BASE64_START, PDF_TYPE, REMOTE, split_data_url
from abridge.apis.params import NO_MESSAGES
from abridge.apis.tools import parse_arguments
from abridge.core.conversation import Json
from abridge.core.model_request import (
    INSTRUCTION_ROLES,
    AudioPart,
    FilePart,
    ImagePart,
    Message,
    MessagePart,
    ModelRequest,
    ReasoningPart,
    RefusalPart,
    TextPart,
    ToolCallPart,
    ToolOutputPart,
    TranslatedRequest,
    normalized,
    unsupported_part,
    with_name_in_text,
)
from abridge.providers.gemini import GeminiCapabilities

MADE_ID = "gemini_call_"
"""Begins the id of a call to which the model gave none. It stays in the contents until its turn has
been found by it (`history.py`); it is not sent back."""

FOREIGN_REASONING = "Reasoning can be used only by the API that it came from."

FILES_HOST = "generativelanguage.googleapis.com"
"""The host of uploaded files, which belong to the account whose key is sent."""


class GoogleConversation(ABC):
    """Take a request's messages in order, for either of Google's APIs. Instructions become the
    system instruction, wherever in the conversation they stand."""

    def __init__(
        self, request: ModelRequest, capabilities: GeminiCapabilities, translated: TranslatedRequest
    ) -> None:
        self.contents: list[Json] = []  # of the conversation; steps on the Interactions API
        self._translated = translated
        self._capabilities = capabilities
        self._param = request.param("messages")
        self._instructions: list[str] = []
        self._names: dict[str, deque[str]] = {}  # of the functions called last, by call id
        for message in normalized(map(self._prepare, request.messages)):
            self._add(with_name_in_text(message, translated))
        if not self.contents and self._instructions:  # Google requires something to answer
            self._ask([TextPart(self.instructions)])
            self._instructions = []
        if not self.contents and not translated.unsupported:
            translated.leave_out(self._param, NO_MESSAGES, essential=True)
        if capabilities.needs_signatures:
            self._sign_current_turn()

    @property
    def instructions(self) -> str:
        return "\n\n".join(self._instructions)

    @abstractmethod
    def _answer(self, parts: Sequence[MessagePart]) -> None:
        """Write what the assistant said."""

    @abstractmethod
    def _ask(self, parts: Sequence[MessagePart]) -> None:
        """Write what the user said, or results of calls."""

    @abstractmethod
    def _sign_current_turn(self) -> None:
        """See to it that no call in the current turn is without a signature."""

    @abstractmethod
    def _write_text(self, text: str) -> Json: ...

    @abstractmethod
    def _write_medium(self, medium: Medium) -> Json: ...

    @abstractmethod
    def _write_result(self, output: ToolOutputPart, text: str, media: list[Json]) -> list[Json]:
        """Write the result of a call: its text, and its images and files, which follow it unless
        the model takes them inside."""

    def _prepare(self, message: Message) -> Message:
        return message

    def _add(self, message: Message) -> None:
        if message.role in INSTRUCTION_ROLES:
            texts = [part.text for part in message.parts if isinstance(part, TextPart)]
            self._instructions += filter(str.strip, texts)
            others = [part for part in message.parts if not isinstance(part, TextPart)]
            self._translated.unsupported += map(unsupported_part, others)
        elif message.role == "assistant":
            self._note_names(message.parts)
            self._answer(message.parts)
        else:
            self._ask(message.parts)

    def _note_names(self, parts: Sequence[MessagePart]) -> None:
        """Note the names of calls for their results: those of one id have theirs in order."""
        names: defaultdict[str, deque[str]] = defaultdict(deque)
        for part in parts:
            if isinstance(part, ToolCallPart):
                names[part.id].append(part.name)
        self._names |= names

    def _name_of(self, output: ToolOutputPart) -> str:
        names = self._names.get(output.call_id, deque([output.call_id]))
        return names.popleft() if len(names) > 1 else names[0]

    def _leave_out_foreign(self, part: ReasoningPart) -> None:
        """Report reasoning of another API, if there is any."""
        if part.text.strip() or part.state:
            self._translated.leave_out(part.param or self._param, FOREIGN_REASONING)

    def _write(self, part: MessagePart) -> list[Json]:
        """Write a part, unless it is blank. A medium that nobody could get is reported."""
        if isinstance(part, TextPart | RefusalPart):
            return [self._write_text(part.text)] if part.text else []
        if isinstance(part, ToolOutputPart):
            text = "\n".join(inner.text for inner in part.parts if isinstance(inner, TextPart))
            others = [inner for inner in part.parts if not isinstance(inner, TextPart)]
            media = [said for inner in others for said in self._write(inner)]
            return self._write_result(part, text, media)
        if isinstance(part, ImagePart | FilePart | AudioPart):
            if (medium := read_medium(part)) is not None:
                return [self._write_medium(medium)]
            self._translated.unsupported.append(unsupported_part(part))
        return []


class GeminiConversationBuilder(GoogleConversation):
    """See `GoogleConversation`. Each message is a content."""

    def _sign_current_turn(self) -> None:
        for step in current_steps(self.contents):
            mark_unsigned(step)

    @property
    def system_instruction(self) -> Json | None:
        return {"parts": [{"text": self.instructions}]} if self.instructions else None

    def _prepare(self, message: Message) -> Message:
        """Return a message with the signature of its text before that. It came behind the text,
        where nothing would be left of it: reasoning belongs to what is said next."""
        parts = sorted(message.parts, key=lambda part: not _is_text_state(part))
        return message.with_parts(parts)

    def _answer(self, parts: Sequence[MessagePart]) -> None:
        self._append("model", list(self._write_answer(parts)))

    def _ask(self, parts: Sequence[MessagePart]) -> None:
        self._append("user", [each for part in parts for each in self._write(part)])

    def _append(self, role: str, parts: list[Json]) -> None:
        if parts:
            self.contents.append({"role": role, "parts": parts})

    def _write_answer(self, parts: Sequence[MessagePart]) -> Iterator[Json]:
        """Write what the assistant said. A signature goes to the call that it came with, or to the
        last text."""
        reasoning = [part for part in parts if isinstance(part, ReasoningPart)]
        signatures = dict(filter(None, (read_state(part.state) for part in reasoning)))
        yield from self._write_reasoning(reasoning, is_own=bool(signatures))
        calls, text = count(), next((p for p in reversed(parts) if isinstance(p, TextPart)), None)
        for part in parts:
            if isinstance(part, ToolCallPart):
                signed = _write_signature(signatures.get(next(calls)))
                yield {"functionCall": self._write_call(part), **signed}
            elif part is text and text.text:
                yield {"text": text.text, **_write_signature(signatures.get(None))}
            elif not isinstance(part, ReasoningPart):
                yield from self._write(part)

    def _write_reasoning(self, reasoning: list[ReasoningPart], *, is_own: bool) -> Iterator[Json]:
        """Write the thoughts of an answer that a signature of the model's came with."""
        for part in reasoning:
            if is_own and part.text.strip():
                yield {"text": part.text, "thought": True}
            elif not is_own:
                self._leave_out_foreign(part)

    def _write_call(self, call: ToolCallPart) -> Json:
        return {**_write_id(call.id), "name": call.name, "args": parse_arguments(call, "arguments")}

    def _write_text(self, text: str) -> Json:
        return {"text": text}

    def _write_medium(self, medium: Medium) -> Json:
        if medium.data:
            return {"inlineData": {"mimeType": medium.type, "data": medium.data}}
        kind = {"mimeType": medium.type} if medium.type else {}
        return {"fileData": {"fileUri": medium.uri, **kind}}

    def _write_result(self, output: ToolOutputPart, text: str, media: list[Json]) -> list[Json]:
        result: Json = {
            **_write_id(output.call_id),
            "name": self._name_of(output),
            "response": {"error" if output.failed else "output": text},
        }
        if media and self._capabilities.media_in_results:
            result["parts"], media = media, []
        return [{"functionResponse": result}, *media]


def _is_text_state(part: MessagePart) -> bool:
    state = read_state(part.state) if isinstance(part, ReasoningPart) else None
    return state is not None and state[0] is None


def _write_signature(signature: str | None) -> Json:
    return {"thoughtSignature": signature} if signature else {}


def _write_id(call_id: str) -> Json:
    return {"id": call_id} if call_id else {}


class Medium(NamedTuple):
    """An image, a file or audio: its bytes, or the address where Google gets it itself."""

    type: str  # its media type; "" if unknown
    data: str = ""  # base64
    uri: str = ""


def read_medium(part: ImagePart | FilePart | AudioPart) -> Medium | None:
    """Return a medium; None if there is neither that anybody could have."""
    if isinstance(part, AudioPart):
        return _with_bytes(f"audio/{part.format or 'wav'}", part.data)
    if part.url.lower().startswith(REMOTE):
        if _is_uploaded(part.url):
            return None
        kind = guess_type(urlsplit(part.url).path)[0]  # a title may end like another file's name
        other = "image/jpeg" if isinstance(part, ImagePart) else guess_type(part.name)[0] or ""
        return Medium(kind or other, uri=part.url)
    if isinstance(part, ImagePart):
        return _read_data(part.url)
    return _read_data(part.data, guess_type(part.name)[0])


def _is_uploaded(url: str) -> bool:
    """Return whether an address is, or may be, that of a file uploaded to Google."""
    try:
        host = urlsplit(url).hostname or FILES_HOST
    except ValueError:
        return True
    return host.rstrip(".") == FILES_HOST


def _read_data(data: str, kind: str | None = None) -> Medium | None:
    """Read base64, as a data URL or bare."""
    told, content = split_data_url(data)
    if content.startswith(PDF_BASE64_START):
        told = told or PDF_TYPE
    return _with_bytes(told or kind or "", content)


def _with_bytes(kind: str, data: str) -> Medium | None:
    return Medium(kind, data) if kind and data else None
