"""Have a model write the summary."""
