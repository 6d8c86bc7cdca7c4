"""Reasoning between turns.

Where Abridge hid or replaced reasoning it remembers the original, and restores it in the request
that upstream receives when the conversation continues.
"""
