"""Run `abridge check`: print the effective settings and test the servers they name."""
