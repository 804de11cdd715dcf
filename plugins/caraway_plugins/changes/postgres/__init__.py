"""Changes of a PostgreSQL table by logical replication; `source` is what the registry names."""
