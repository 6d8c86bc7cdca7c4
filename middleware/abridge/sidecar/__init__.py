"""The sidecar: all that only `abridge serve` and the other commands need."""
