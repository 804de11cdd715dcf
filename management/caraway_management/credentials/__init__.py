"""Makes and checks credentials. Values are shown once, and kept as hashes."""
