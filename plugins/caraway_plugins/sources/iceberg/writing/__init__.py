"""Writes rows into Iceberg tables: one snapshot for each statement."""
