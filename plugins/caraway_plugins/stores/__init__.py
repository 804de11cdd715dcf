"""State stores and result stores; nothing here knows what the entries and answers mean."""
