"""Write summaries: the protocol, the built-in summarizers, what guards them."""

from abridge.core.plan import Passage
from abridge.core.styles import SummaryStyle
from abridge.core.usage import SummarizerUsage, Tokens
from abridge.summarizers.summarizer import Summarizer

__all__ = ["Passage", "Summarizer", "SummarizerUsage", "SummaryStyle", "Tokens"]
