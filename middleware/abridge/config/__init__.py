"""Settings: the model, where values come from, what is worth a warning."""
