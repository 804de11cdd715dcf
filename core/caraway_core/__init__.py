"""Vocabulary that every component shares: ids, errors, values, settings, protocols, the registry.

No I/O beyond reading a manifest lives here, and nothing here imports an engine, a web framework
or a cluster library.
"""
