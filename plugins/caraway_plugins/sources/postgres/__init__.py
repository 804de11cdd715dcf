"""PostgreSQL tables that are queried in the database: their schema, and reading their rows."""
