"""One record per request, reported in a log line, a trace and on the page."""
