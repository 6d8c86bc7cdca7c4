"""Stores: in this process, or in a Redis or Valkey that several processes share."""
