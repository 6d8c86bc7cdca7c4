"""Stores for what is remembered: in this process, or in a Redis that replicas share."""
