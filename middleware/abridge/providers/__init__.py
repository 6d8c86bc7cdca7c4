"""The differences between providers and between model servers, a row for each. Pure."""
