"""What providers and model servers do differently, a row each. Pure."""
