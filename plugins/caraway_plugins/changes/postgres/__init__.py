"""Changes of a PostgreSQL table by logical replication; the registry refers to `source`."""
