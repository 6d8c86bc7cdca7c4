"""Anthropic Messages, an API that upstreams speak."""
