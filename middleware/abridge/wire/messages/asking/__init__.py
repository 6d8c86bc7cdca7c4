"""Requests in the format of Anthropic Messages."""
