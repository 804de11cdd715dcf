"""Statements that read or write the source of an accelerated dataset."""
