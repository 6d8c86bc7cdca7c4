"""The parts of a translated response: the response object, and the items streamed into it."""
