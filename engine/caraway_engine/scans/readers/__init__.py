"""Readers: one for each kind of table, which makes a table of the engine of it."""
