"""Turns, conversations and summaries, independent of any API.

Pure: no I/O, no clock, no tasks. Time comes in as an argument.
"""
