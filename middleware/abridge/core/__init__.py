"""Sequence one response: reasoning, its summary and the answer, in no API's words.

Pure: no I/O, no clock, no task. Time comes in as an argument.
"""
