"""Live reasoning summaries, in OpenAI's own shape, for every model."""

__version__ = "0.1.0"
