"""Change events from a Kafka topic; the registry refers to `source`."""
