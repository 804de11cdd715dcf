"""What is known of a statement: its size, its shape, and what its typed plan says it does."""
