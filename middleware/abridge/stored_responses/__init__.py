"""Stored responses: `previous_response_id`, item references, GET and DELETE."""
