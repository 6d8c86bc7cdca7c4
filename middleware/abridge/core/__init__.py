"""Requests, responses and conversations independent of any API, and the order of a response.

Pure: no I/O, no clock, no task. Time comes in as an argument.
"""
