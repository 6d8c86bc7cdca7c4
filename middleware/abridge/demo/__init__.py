"""What `abridge demo` runs: a scripted reasoning model, said to be one, and a client that shows
what becomes of its thinking on the way."""
