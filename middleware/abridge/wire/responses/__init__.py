"""The Responses API, as OpenAI has it and as others make it."""
