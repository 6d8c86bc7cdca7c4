"""One record a request; metrics, logs and traces made of it."""
