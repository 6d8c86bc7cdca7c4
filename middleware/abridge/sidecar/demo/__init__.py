"""Run `abridge demo`: a scripted reasoning model, and a client that shows its summary live."""
