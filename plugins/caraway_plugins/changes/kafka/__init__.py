"""Change events of a Kafka topic; `source` is what the registry names."""
