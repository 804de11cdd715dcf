"""ASGI middleware that wraps every route."""
