"""Requests to a runtime: addresses, profiles, arguments, HTTP, retries and the JSON of answers."""
