"""Embedding models: those that run in this process, and clients of providers.

Each module has `build`, which `caraway_core.loading.registry` finds by the name of the provider.
Heavy packages are imported when a model is built.
"""
