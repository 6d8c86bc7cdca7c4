"""Tests of Gemini's own API."""
