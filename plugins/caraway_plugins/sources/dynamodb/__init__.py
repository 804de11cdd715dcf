"""Tables of Amazon DynamoDB: items as rows, conditions of keys and filters as expressions."""
