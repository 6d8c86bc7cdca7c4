"""Test Gemini's Interactions API as upstreams speak it."""
