"""Tables of DuckDB files that are queried by DuckDB: what they are, and reading their rows."""
