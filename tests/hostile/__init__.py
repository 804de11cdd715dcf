"""Hostile statements must harm only themselves; they run against real processes."""
