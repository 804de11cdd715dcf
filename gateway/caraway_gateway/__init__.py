"""Serves requests: HTTP, Arrow Flight, MCP, the table catalog, metrics; and composes a runtime."""
