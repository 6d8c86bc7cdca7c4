"""The wire formats of each API and the differences between providers.

Pure: no I/O, no clock, no tasks. Bytes come in and go out as arguments and results.
"""
