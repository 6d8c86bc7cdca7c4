"""A fleet of replicas behind nginx, with one Redis: `python -m tests.campaigns.fleet`."""
