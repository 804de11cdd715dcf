"""One module for each outside system: sources, secret stores, state stores, result stores.

Each implements a Protocol of `caraway_core.protocols` and is found through its registry.
"""
