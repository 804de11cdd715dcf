"""Finds plug-ins by name, and imports modules when they are needed."""
