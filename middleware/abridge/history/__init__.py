"""What becomes of reasoning between turns.

Where Abridge hid or replaced reasoning it remembers the original, and puts it back into what
upstream receives when the conversation goes on.
"""
