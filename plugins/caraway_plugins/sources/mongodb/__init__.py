"""Collections of MongoDB: documents as rows, and filters that compare as the engine does."""
