"""The kinds of answers: a stream, one body, or one that is not read."""
