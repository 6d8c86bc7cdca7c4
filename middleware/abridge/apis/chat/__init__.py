"""Chat Completions, in the dialects of its many providers."""
