"""What a request refers to of the things that its upstream stores for an account.

Where all clients share one key, the account is everybody's: whoever names an object gets it. Here
is found which objects a body names; whose they are is not known here.

Servers read fields that no table has. So one that is not known names an object if it is named as
such fields are, or if its value looks like an object's id. Known is a field by its exact name, and
with a value of the kind that it has; otherwise names are compared as lenient servers compare them,
without case and separators.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import Any, NamedTuple, TypeAlias

from abridge.apis.json import string
from abridge.apis.openai import is_minted
from abridge.core.conversation import Json

EVERYTHING = "/"
"""The path of objects of which it is not known where the API lists them."""

RESPONSES_PATH = "/v1/responses"

OBJECT_FIELDS: Mapping[str, str] = {
    "file_id": "/v1/files",
    "file_ids": "/v1/files",
    "vector_store_id": "/v1/vector_stores",
    "vector_store_ids": "/v1/vector_stores",
    "container": "/v1/containers",
    "container_id": "/v1/containers",
    "conversation": "/v1/conversations",
    "conversation_id": "/v1/conversations",
    "prompt": "/v1/prompts",
    "prompt_id": "/v1/prompts",
    "assistant_id": "/v1/assistants",
    "thread_id": "/v1/threads",
    "cached_content": "/v1beta/cachedContents",
    "skill_id": "/v1/skills",
    "user_profile_id": "/v1/user_profiles",
    "workspace_id": "/v1/workspaces",
    "tunnel_id": "/v1/tunnels",
}
"""Fields that name an object, by its id or an object with its id, and the path at which the API
lists such objects."""

ID_PREFIXES: Mapping[str, str] = {
    **dict.fromkeys(("resp_", "msg_", "rs_", "fc_", "cmp_"), RESPONSES_PATH),
    "chatcmpl-": "/v1/chat/completions",
    **dict.fromkeys(("file-", "file_", "upload_"), "/v1/files"),
    "batch_": "/v1/batches",
    "msgbatch_": "/v1/messages/batches",
    "vs_": "/v1/vector_stores",
    **dict.fromkeys(("cntr_", "container_"), "/v1/containers"),
    "conv_": "/v1/conversations",
    "pmpt_": "/v1/prompts",
    "asst_": "/v1/assistants",
    "thread_": "/v1/threads",
    "skill_": "/v1/skills",
    "tunnel_": "/v1/tunnels",
    "voice_": "/v1/audio/voices",
    "files/": "/v1beta/files",
    "cachedContents/": "/v1beta/cachedContents",
    "fileSearchStores/": "/v1beta/fileSearchStores",
    "projects/": EVERYTHING,
}
"""How the ids of stored objects begin at OpenAI, Anthropic and Google, and the path at which the
API lists such objects. Vertex AI has the names of all of them begin with their project."""

KNOWN_IDS = frozenset(
    {
        *("call_id", "tool_call_id", "tool_use_id", "tool_id", "caller_id", "approval_request_id"),
        *("tool_name", "toolset_name", "server_name", "mcp_server_name", "download_id", "tab_id"),
        *("filename", "file_name", "display_name"),
        *("user_id", "session_id", "request_id", "stream_id", "continuation_id"),
    }
)
"""Fields that are named like those of an object, and name none: what stands in the request itself,
files by the names that the client gives them, and the client and its requests."""

TOKEN_IDS = frozenset(
    {
        *("stop_token_ids", "allowed_token_ids", "bad_words_ids", "prompt_token_ids", "token_ids"),
        *("bos_token_id", "eos_token_id", "pad_token_id"),
    }
)
"""Likewise; numbers of tokens."""

CONNECTOR_ID = "connector_id"
"""A service that OpenAI's tools call with a credential of the client's (`connector_gmail`); at
Mistral an object of the account."""

FREE_TEXTS = frozenset(
    {
        *("type", "role", "name", "model", "status", "phase", "object", "title", "description"),
        *("content", "text", "input", "output", "instructions", "system", "arguments", "refusal"),
        *("thinking", "reasoning", "reasoning_content", "summary", "signature", "data", "result"),
        *("encrypted_content", "encrypted_index", "cited_text", "document_title", "suffix"),
        *("user", "safety_identifier", "prompt_cache_key", "tool_choice", "include", "betas"),
        *("stop", "stop_sequences", "url", "image_url", "file_url", "file_data", "server_url"),
        *("server_label", "server_description", "authorization", "authorization_token"),
        *("allowed_tools", "exclude_tools", "tool_names", "query", "queries", "cache_salt"),
        *("key", "value", "pattern", "path", "code", "command", "commands", "diff"),
        *("logs", "stdout", "stderr", "error", "message", "reason"),
    }
)
"""Fields with texts of the client's or the model's own, whatever they look like."""

CLIENT_FIELDS: Mapping[str, frozenset[str]] = {
    **dict.fromkeys(("metadata", "client_metadata", "trace"), frozenset({""})),
    **dict.fromkeys(("structured_outputs", "guided_json", "json_schema"), frozenset({""})),
    "schema": frozenset({"json_schema", "format", "response_format", "output_format"}),
    "arguments": frozenset({"function", "function_call", "input"}),
    **dict.fromkeys(("headers", "configs"), frozenset({"tools"})),
}
"""Fields whose content is the client's own, whatever is in it, and the fields in which they are so;
an empty name is the body itself. `client_metadata` is Codex', `trace` OpenRouter's, and `configs`
are Anthropic's, by the names of tools."""

SCHEMA_FIELDS = frozenset({"parameters", "input_schema", "output_schema", "input_examples"})
"""Fields of a tool that describe its calls, so that their content is the client's own."""

CLIENTS_TOOLS = frozenset({"", "function", "custom", "tool_search"})
"""Types of tools that the client runs. The `parameters` of a hosted one may say where it looks."""

TOOL_FIELDS = frozenset({"tools", "functions", "function"})

CALL_TYPES = frozenset({"tool_use", "server_tool_use", "mcp_tool_use"})
"""Anthropic's calls, whose `input` the model wrote."""

VARIABLES = "variables"
"""The field of a stored prompt in which the client has chosen all names."""

ID_HOLDERS = frozenset({"messages", "tool_calls", "plugins", "documents"})
"""Fields with objects that have an `id` of the client's or the model's own; OpenRouter's plugins
have their names there."""

CONVERSATIONS = frozenset({"messages", "input"})

LOADED_ITEMS: Mapping[str, str] = {
    "reasoning": "encrypted_content",
    "compaction": "encrypted_content",
    "image_generation_call": "result",
    "": "role",
}
"""Types of items that Responses loads by their id where this field of theirs is empty. One without
a type is a message if it has a role, and else a reference, whatever empty fields it has."""

ITEM_FIELDS = frozenset({"id", "type", *LOADED_ITEMS.values()})
"""Fields by which it is known whether Responses loads an item."""


# What a body names

OTHER_SPELLINGS = (b"\\u", b"\0")
"""Bytes without which names are spelled as they are read: escapes, and zeros of UTF-16 and
UTF-32."""

SEPARATORS = "_-. "

PREVIOUS_RESPONSE_ID, CONVERSATION = "previous_response_id", "conversation"

NAME_ENDS = ("id", "ids", "name", "names")
"""How fields are named that name an object."""

_PREFIXES = tuple(ID_PREFIXES)

_PROJECT = r"projects/[\w.-]+/locations/[\w.-]+/"

_ID = re.compile(rf"(?:{_PROJECT})?({'|'.join(map(re.escape, _PREFIXES))})[\w./-]+", re.ASCII)

_ID_VALUE = re.compile(
    f'"(?:{"|".join(re.escape(prefix.rstrip("/")) for prefix in _PREFIXES)})'.encode()
)

MAX_ID_CHARS = 256

_CONNECTOR = re.compile(r"connector_[a-z]+")

_MODEL = b'"model"'

_Rule: TypeAlias = Callable[[Any], str | None]
"""Returns the path at which the API lists what a field's value names; None if it names nothing."""


class _Place(NamedTuple):
    """A place in a body."""

    outer: _Place | None  # None: it is the body itself
    name: str | int  # the key or index in that
    first_key: str
    last_key: str

    def enter(self, name: str | int) -> _Place:
        key = name if isinstance(name, str) else self.last_key
        return _Place(self, name, self.first_key or key, key)

    @property
    def is_input_item(self) -> bool:
        is_entry = isinstance(self.name, int) and self.last_key == "input"
        return is_entry and self.outer is not None and self.outer.outer is _BODY

    @property
    def is_prompt_variables(self) -> bool:
        """Return whether all names at this place are the client's own."""
        is_so_named = (self.first_key, self.name) == ("prompt", VARIABLES)
        return is_so_named and self.outer is not None and self.outer.outer is _BODY


_BODY = _Place(None, "", "", "")


class ObjectReference(NamedTuple):
    """A field that names an object, or may."""

    place: _Place
    path: str  # at which the API lists such objects; `EVERYTHING` if that is not known

    @property
    def param(self) -> str:
        """The field as errors name it: `input[0].content`."""
        names, place = [], self.place
        while place.outer is not None:
            names.append(f"[{place.name}]" if isinstance(place.name, int) else f".{place.name}")
            place = place.outer
        return "".join(reversed(names)).removeprefix(".")


def may_name_objects(body: bytes) -> bool:
    """Return whether a body may name an object, or two models, by a byte search alone."""
    if body.count(_MODEL) > 1 or any(spelling in body for spelling in OTHER_SPELLINGS):
        return True
    folded = body.translate(_LOWER, _BETWEEN)
    return (
        any(needle in folded for needle in _NEEDLES)
        or folded.count(b'name":') > folded.count(b'"name":')
        or _ID_VALUE.search(body) is not None
    )


def find_object_references(
    body: Json, *, checks_responses: bool = False
) -> Iterator[ObjectReference]:
    """Yield the fields of a request that name objects, or may.

    With `checks_responses`, it is known elsewhere whose responses and items the request names.
    """
    rules = _Rules(checks_responses=checks_responses)
    pending: list[tuple[_Place, Any, _Rule]] = [(_BODY, body, _anything)]
    while pending:
        place, value, rule_of_entries = pending.pop()
        for name, entry in _entries(value):
            rule = rule_of_entries if isinstance(name, int) else rules.find(place, name)
            if (path := rule(entry)) is not None:
                yield ObjectReference(place.enter(name), path)
                rule = _anything  # for the entries of a list: they are named with it
            if isinstance(entry, dict | list) and not _is_clients(name, value, place):
                pending.append((place.enter(name), entry, rule))


def _entries(value: Any) -> Iterable[tuple[Any, Any]]:
    return value.items() if isinstance(value, dict) else enumerate(value)


def _is_clients(name: Any, holder: Any, place: _Place) -> bool:
    """Return whether the content of a field is the client's own. A body's own `input` is never."""
    if name in CLIENT_FIELDS:
        return place.last_key in CLIENT_FIELDS[name]
    if name in SCHEMA_FIELDS:
        return place.last_key in TOOL_FIELDS and string(holder.get("type")) in CLIENTS_TOOLS
    return name == "input" and place is not _BODY and string(holder.get("type")) in CALL_TYPES


# Rules: what a field may name, by its value


def _anything(_: Any) -> None:
    return None


def _by_value(value: Any) -> str | None:
    """A field that is not known."""
    if not (isinstance(value, str) and value.startswith(_PREFIXES)) or len(value) > MAX_ID_CHARS:
        return None
    match = _ID.fullmatch(value)
    return ID_PREFIXES[match[1]] if match is not None else None


def _by_name(value: Any, path: str = EVERYTHING) -> str | None:
    """One that is named as those that name an object."""
    is_said = bool(value) if isinstance(value, str | list | dict) else type(value) in (int, float)
    return path if is_said else None


def _object(value: Any, path: str) -> str | None:
    """An object's id, or an object with it. Without one it describes something new."""
    described = isinstance(value, dict) and not value.get("id")
    return None if described else _by_name(value, path)


def _conversation(value: Any) -> str | None:
    """A conversation, unless its id says that Abridge keeps it."""
    name = value.get("id") if isinstance(value, dict) else value
    return None if is_minted(string(name)) else _object(value, OBJECT_FIELDS[CONVERSATION])


def _known_id(value: Any) -> str | None:
    """One that is known to name nothing that is stored."""
    return EVERYTHING if isinstance(value, list | dict) else None


def _token_ids(value: Any) -> str | None:
    entries = value if isinstance(value, list) else [value]
    return EVERYTHING if any(isinstance(entry, str | dict) for entry in entries) else None


def _connector(value: Any) -> str | None:
    is_service = isinstance(value, str) and _CONNECTOR.fullmatch(value)
    return None if is_service else _by_name(value)


def _content_id(value: Any) -> str | None:
    """The id of a part of a conversation."""
    path = _by_value(value)
    return _known_id(value) if path == RESPONSES_PATH else path or _known_id(value)


def _other_spelling(_: Any) -> str:
    return EVERYTHING


class _Rules:
    """The rules of one body's fields."""

    def __init__(self, *, checks_responses: bool) -> None:
        self._checks_responses = checks_responses
        self._rules = dict(_KNOWN)  # and those of other names, once they came up

    def find(self, place: _Place, name: str) -> _Rule:
        """Return the rule of a field at a place."""
        if self._checks_responses:
            if name == PREVIOUS_RESPONSE_ID and place is _BODY:
                return _known_id
            if name == CONVERSATION and place is _BODY:
                return _conversation
            if place.is_input_item and (rule := _ITEM_RULES.get(_fold(name))) is not None:
                return rule if name in ITEM_FIELDS else _other_spelling
        if name == "id":
            return _find_of_id(place)
        if place.name == VARIABLES and place.is_prompt_variables:
            return _anything
        rule = self._rules.get(name)
        if rule is None:
            rule = self._rules[name] = _rule_for(_fold(name))
        return rule


def _find_of_id(place: _Place) -> _Rule:
    first, last = place.first_key, place.last_key
    if _fold(last) in _OBJECT_RULES:
        return _anything  # the field that holds it was judged by it
    if place.is_input_item or (place.outer is _BODY and first in CONVERSATIONS):
        return _by_name
    if first in CONVERSATIONS:
        return _known_id if last in ID_HOLDERS else _content_id
    return _known_id if first == last and first in ID_HOLDERS else _by_name


def _rule_for(folded: str) -> _Rule:
    """Return the rule of a field that is not known, by its folded name."""
    rule = _OBJECT_RULES.get(folded)
    if rule is not None:
        return rule
    return _by_name if folded.endswith(NAME_ENDS) and folded != "name" else _by_value


def _fold(name: str) -> str:
    """Return a name as lenient servers compare it."""
    return name.casefold().translate(_NO_SEPARATORS)


_NO_SEPARATORS = dict.fromkeys(map(ord, SEPARATORS))

_LOWER = bytes(range(256)).lower()

_BETWEEN = SEPARATORS.encode() + b"\t\r\n"
"""What may stand within a name, and between it and its colon."""

_KNOWN: dict[str, _Rule] = {
    **dict.fromkeys(FREE_TEXTS, _anything),
    **dict.fromkeys(KNOWN_IDS, _known_id),
    **dict.fromkeys(TOKEN_IDS, _token_ids),
    CONNECTOR_ID: _connector,
}

_OBJECT_RULES: dict[str, _Rule] = {
    folded: partial(_by_name if folded.endswith(NAME_ENDS) else _object, path=path)
    for name, path in OBJECT_FIELDS.items()
    for folded in (_fold(name),)
}

_ITEM_RULES: dict[str, _Rule] = {
    _fold(name): _known_id if name in ("id", "type", "role") else _anything for name in ITEM_FIELDS
}

_NEEDLES = (
    *(b'id":', b'ids":', b'names":'),
    *(f'"{name}":'.encode() for name in _OBJECT_RULES if not name.endswith(NAME_ENDS)),
)


def loaded_id(item: Any) -> str:
    """Return the id by which upstream would load an input item's content; empty if it is whole."""
    if not isinstance(item, dict):
        return ""
    content = LOADED_ITEMS.get(string(item.get("type")))
    return string(item.get("id")) if content is not None and not item.get(content) else ""
