"""Compare what clients get from two checkouts, byte for byte."""
