"""What a turn and a conversation are, in no API's words.

Pure: no I/O, no clock, no task. Time comes in as an argument.
"""
