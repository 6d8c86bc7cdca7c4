"""Run the sidecar: listen, serve, drain, with one process or several."""
