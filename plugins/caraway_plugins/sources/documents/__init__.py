"""Rows of databases whose objects have no declared fields: their columns, and their table."""
