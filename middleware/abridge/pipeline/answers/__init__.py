"""The ways in which an answer can come: a stream, one body, or one that is not read."""
