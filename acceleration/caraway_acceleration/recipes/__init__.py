"""Builds the SQL that loads versions: selection, retention, columns and partitions."""
