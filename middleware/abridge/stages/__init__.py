"""Stages: each turns the events of an answer into events, knows no API, and exists once."""
