"""`/v1/sql`: run a statement, list what runs, stop it."""
