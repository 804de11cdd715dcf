"""What a version is made of: SQL over the source, retention, columns and partitions."""
