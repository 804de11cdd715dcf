"""Changes of tables of DynamoDB: a scan of all items, then the stream of the table."""
