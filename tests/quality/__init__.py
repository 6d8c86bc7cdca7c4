"""Measure how good summaries are: `python -m tests.quality`. See docs/examples-of-summaries.md.

The corpus is in `reasonings/`: one text each, and in the manifest what a reader must learn of it
(`key`), what the last part must say (`final`), and what must not be shown: `secret`, and `never`,
which is what the model took back and what others told it to do. Each is a list of regular
expressions. A form feed stands where a tool was called.
"""
