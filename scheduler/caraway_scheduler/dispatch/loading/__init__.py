"""Loads accelerated datasets into the memory of executors."""
