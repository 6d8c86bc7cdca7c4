"""What is left out of an answer where raw reasoning is hidden, by what told that it must be."""

from __future__ import annotations

from collections import Counter
from typing import Literal, TypeAlias

Boundary = Literal["tag", "token", "phrase", "closing_tag", "template", "cut", "stray"]
"""Why a piece of text is taken for thinking: an opening tag, a control token or a phrase begins it;
a closing tag that nothing opened ends it; the profile says that texts begin inside it; the
answer broke off before that was certain; or it stands outside the JSON of a call's arguments."""

HiddenKind = Literal[Boundary, "field", "state", "error"]
"""Besides, a field that is not understood, opaque state that may be read, and words of an error."""

HiddenCount: TypeAlias = Counter[HiddenKind]
