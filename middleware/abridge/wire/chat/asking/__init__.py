"""Read and write requests of Chat Completions."""
