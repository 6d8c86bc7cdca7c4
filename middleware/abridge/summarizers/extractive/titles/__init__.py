"""Make the titles of extracted parts."""

from abridge.summarizers.extractive.titles.make import make_title

__all__ = ["make_title"]
