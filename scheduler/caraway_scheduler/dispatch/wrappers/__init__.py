"""Wraps a dispatch or its streams: bodies of functions, and the catalogs that statements use."""
