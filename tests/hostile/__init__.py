"""Statements that must hurt only themselves, run against real processes."""
