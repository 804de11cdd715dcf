"""Requests to a runtime: addresses, arguments, HTTP, retries, and the JSON of answers."""
