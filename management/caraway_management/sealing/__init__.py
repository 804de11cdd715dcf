"""Seals values: data keys in the database, themselves sealed by keys from outside of it."""
