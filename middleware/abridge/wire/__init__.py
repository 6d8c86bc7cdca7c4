"""How each API and each provider spells a turn.

Pure: no I/O, no clock, no task. Bytes come in and go out as arguments and results.
"""
