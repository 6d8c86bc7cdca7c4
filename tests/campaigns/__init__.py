"""Campaigns: many odd, long or broken runs, by hand or, short, by CI. See README.md."""
