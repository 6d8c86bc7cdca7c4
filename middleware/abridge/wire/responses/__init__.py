"""The Responses API, of OpenAI and of compatible servers."""
