"""The store and its backends: in this process, or in a Redis that replicas share."""
