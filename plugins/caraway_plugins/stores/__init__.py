"""State stores and result stores; they do not interpret entries and results."""
