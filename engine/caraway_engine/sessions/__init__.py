"""Sessions: one catalog snapshot that statements are planned and run over."""
