"""Gemini's own API."""
