"""Write summaries: the protocol, the built-in summarizers, and what guards them.

A summarizer of your own is any object with the protocol `Summarizer`: for each part of a summary
its `summarize` gets a `Passage` and yields text, then at most one `SummarizerUsage`, whose `Tokens`
are None where unknown. Pass it to `AbridgeMiddleware(summarizer=...)` or `create_app`, with
`summarizer.kind = "object"` in the settings.
"""

from abridge.core.plan import Passage
from abridge.core.styles import SummaryStyle
from abridge.core.usage import SummarizerUsage, Tokens
from abridge.summarizers.summarizer import Summarizer

__all__ = ["Passage", "Summarizer", "SummarizerUsage", "SummaryStyle", "Tokens"]
