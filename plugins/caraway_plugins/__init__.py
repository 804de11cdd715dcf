"""Plug-ins for external systems: sources, embedding models, secret, state and result stores.

Each plug-in implements a Protocol of `caraway_core.protocols` and is found through a registry.
"""
