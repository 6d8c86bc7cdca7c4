"""The columns of an API's row.

The row of an API that clients speak is an `Api`, of one that upstreams speak an `UpstreamApi`; they
are in `apis/<name>/api.py`, and `apis/registry.py` lists them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal, Protocol, TypeAlias
from urllib.parse import quote

from abridge.apis.compaction.form import CompactionForm
from abridge.apis.display import Display
from abridge.apis.history import History
from abridge.apis.protocols import Reader, RequestEcho, Writer
from abridge.apis.shapes import Shape
from abridge.core.conversation import Json
from abridge.core.model_request import ModelRequest, TranslatedRequest
from abridge.providers.profile import ApiName, Profile
from abridge.stages.attribution import CallAttribution


@dataclass(slots=True, frozen=True)
class ApiError:
    """What an API's error body says, in OpenAI's words for kinds and codes."""

    message: str
    kind: str = "server_error"
    param: str | None = None  # the field at fault
    code: str | None = None
    request_id: str = ""


class WriteError(Protocol):
    """Write an error body in the shape of an API."""

    def __call__(
        self,
        message: str,
        *,
        kind: str = "server_error",
        param: str | None = None,
        code: str | None = None,
        status: int | None = None,
    ) -> Json: ...


ReasoningWish: TypeAlias = Literal["summarized", "omitted", "off"]
"""What a request says of the reasoning that its client wants to see, on an API with a word for it:
summaries, reasoning without its text, or none at all.
"""


@dataclass(slots=True, frozen=True)
class UpstreamOptions:
    """Options for writing a request to an upstream."""

    profile: Profile
    max_tokens: int = 16384  # for an API that requires a limit, where the client gave none
    summary_due: bool = False
    """A summary is to be shown, whether or not the request itself asks for one."""


@dataclass(slots=True, frozen=True)
class UpstreamApi:
    """An API that an upstream may speak, whatever its clients speak."""

    name: ApiName
    title: str  # what people call it
    path: str
    """End of its endpoint's path. `{model}` stands for the model's name; a query takes the place of
    the client's."""
    translating_reader: Callable[[Profile, Display, int], Reader]
    """Makes a Reader of translated events. The number limits the characters that it keeps."""
    history: Callable[[Json], History]
    write_request: Callable[[ModelRequest, UpstreamOptions], TranslatedRequest]
    """Writes a request in this API."""
    read_error: Callable[[Json], ApiError | None]
    """Reads an error body; None if it is none. APIs with the same reader have one error shape."""
    answer_keys: tuple[str, ...]
    """Keys of a whole answer, one of which holds a list or an object; an error has none."""
    headers: Mapping[str, str] = field(default_factory=dict)  # sent with every request
    key_header: str = "authorization"
    """The header for the key, unless the upstream's profile names another."""
    header_prefix: str = ""
    """Prefix of the request headers that this API alone knows; empty if there are none."""
    query_names: frozenset[str] = frozenset()
    """Names of the query's parameters that this API alone knows."""
    stores_responses: bool = False  # its answers are stored and may be referred to
    requires_reasoning: bool = False
    """It refuses calls, while they are answered, without the reasoning before them."""
    stream_path: str = ""  # as `path`, for an answer that streams, if that is another
    whole_in_stream: tuple[bytes, bytes] = (b"data: ", b"\n\n")
    """What makes a stream of a whole answer, before and after it. Its reader reads that, too."""

    def endpoint(self, model: str, *, stream: bool) -> str:
        """Return the path, percent-encoded, and the query for a request. Of a model's name only
        what follows the last slash goes into a path, so that no name leads anywhere else."""
        path = self.stream_path if stream and self.stream_path else self.path
        name = quote(model.rpartition("/")[2], safe="", errors="replace")
        return path.replace("{model}", name)


@dataclass(slots=True, frozen=True)
class Api:
    """An API that clients speak."""

    name: ApiName
    path: str  # end of its endpoint's path
    conversation_field: str  # the request field that holds the messages or items
    reader: Callable[[Profile, Display, int], Reader]
    """Makes a Reader. The number limits the characters that it keeps."""
    writer: Callable[[Profile, Display, RequestEcho | None, int], Writer]
    """Makes a Writer: of translated events, if it is to echo a request. The number limits the
    characters that it keeps then."""
    history: Callable[[Json], History]
    read_request: Callable[[Json], ModelRequest]
    """Reads a request for an upstream that speaks another API."""
    request_shape: Shape
    """What of a request goes upstream where raw reasoning is hidden: nothing that might have
    upstream write it where no Reader looks for it."""
    wants_state: Callable[[Json], bool | None]
    """True if a request asks for opaque state; None if the API has no field for that."""
    write_error: WriteError
    stream_error: Callable[[Json, Json], bytes]
    """Encodes an error body as an event that ends a stream; the second object adds to the error."""
    attribution: Callable[[Display, int], CallAttribution] | None
    """Makes the stage that attributes calls; None where the Writer does, whose finished items
    repeat all that there is to know. The number limits the characters that it keeps."""
    upstream: UpstreamApi  # this API as upstreams speak it
    fallbacks: tuple[ApiName, ...]
    """The APIs to try, in order, where an upstream turns out not to have this one."""
    default_exposure: tuple[bool, bool] = (False, True)
    """The meaning of `expose = "auto"` on it: (raw, summary)."""
    has_summary_field: bool = False
    """`reasoning.summary` is a field of the API, not an extension of Abridge's."""
    has_summary_parts: bool = False
    """Summaries stand apart from raw reasoning, in parts; without, both are text of one field."""
    echoed_fields: tuple[str, ...] = ()  # request fields that an answer repeats
    effort_field: str = ""
    """The request field for the effort, dotted if nested; empty if each provider has its own."""
    verbosity_field: str = ""
    """The request field for the verbosity, dotted if nested; empty if the API has none."""
    other_efforts: Mapping[str, Json] = field(default_factory=dict)
    """The fields of a request for the efforts that its field does not take."""
    endpoint: str = ""
    """End of the path that clients call, where `path` alone might be that of something else."""
    counts_tokens_at: str = ""
    """End of the path at which clients have a request's tokens counted; empty if nowhere."""
    token_count: Mapping[str, str] = field(default_factory=dict)
    """What the answer there says beside the number."""
    compaction: CompactionForm | None = None  # None: its clients ask for no compactions
    read_wish: Callable[[Json], ReasoningWish | None] = lambda _: None
    """Reads the client's wish for reasoning; None if the request says nothing."""
    wants_progress: Callable[[Iterable[tuple[bytes, bytes]]], bool] = lambda _: False
    """Tells by a request's headers whether the client wants to know how far thinking is that it is
    not shown."""
    wish_needle: bytes = b""
    """Bytes that a body with such a wish contains."""
    reasons_on_request: bool = False
    """Clients expect reasoning in an answer only if they asked for it."""
    ask_to_think: Callable[[Json], bool] = lambda _: False
    """Changes a request, which goes to upstream untranslated, so that a model reasons that does so
    only if asked. Returns True if that changed anything."""
    ask_for_usage: Callable[[Json], bool] = lambda _: False
    """Changes a request so that its answer has usage, where that has to be asked for. Returns True
    if that changed anything."""
    carries_images: bool = False
    """Its answers have a form for images, so that those of other APIs reach its clients."""
    ends_with_text: bool = False
    """Clients expect nothing after the text of an answer without calls, reasoning included."""
    returns_signatures: bool = False
    """Clients return each piece of reasoning with its signature, verbatim, so that an envelope fits
    there without having been asked for."""
    statuses: Mapping[int, int] = field(default_factory=dict)
    """The status of an error on this API, for those that are another elsewhere."""
    request_id_header: bytes = b""
    """The response header that names the request, as error bodies do in `request_id`; empty if the
    API has none."""

    @property
    def compacts_at(self) -> str:
        """End of the path at which conversations are compacted; empty if nowhere."""
        return self.compaction.endpoint if self.compaction is not None else ""

    def follow_calls(self, display: Display) -> CallAttribution | None:
        """Return the stage that attributes the calls of an answer, if one is to."""
        if self.attribution is None or display.attribution_limit is None:
            return None
        return self.attribution(display, display.attribution_limit)
