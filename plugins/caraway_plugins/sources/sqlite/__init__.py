"""Tables of SQLite files that are queried by SQLite: their definition and their rows."""
