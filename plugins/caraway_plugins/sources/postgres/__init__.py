"""Tables of PostgreSQL that are read where they are: what they look like, and how they are read."""
