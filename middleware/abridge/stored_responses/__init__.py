"""Stored responses and conversations: references to them, and their endpoints."""
