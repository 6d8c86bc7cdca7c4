"""The Responses API, as OpenAI defines it and as other servers implement it."""
