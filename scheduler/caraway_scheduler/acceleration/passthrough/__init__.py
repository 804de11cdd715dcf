"""Statements that read the source of an accelerated dataset instead of its rows."""
