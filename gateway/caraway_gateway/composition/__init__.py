"""Builds a scheduler from its manifest, starts it, reloads it and stops it."""
