"""The database: SQLite embedded, or PostgreSQL by URL. The same tables and statements for both."""
