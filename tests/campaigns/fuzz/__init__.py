"""Mutants of answers, requests, sealed reasoning and raw HTTP, against the whole app."""
