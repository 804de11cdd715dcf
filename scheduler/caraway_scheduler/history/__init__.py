"""Task history: the spans of finished tasks, as a SQL table and as OpenTelemetry traces."""
