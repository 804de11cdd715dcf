"""The route `/v1/search`."""
