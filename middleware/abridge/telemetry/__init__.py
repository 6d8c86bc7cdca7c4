"""What one request came to, told to whoever runs Abridge: in a log line, a trace, on the page."""
