"""Shared types of every component: ids, errors, values, settings, protocols and the registry.

The only I/O here is reading a manifest. Nothing here imports an engine, a web framework or a
cluster library.
"""
