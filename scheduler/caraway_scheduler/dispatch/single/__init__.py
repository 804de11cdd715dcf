"""Runs statements on one executor: point lookups, small statements and those that write."""
