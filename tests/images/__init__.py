"""The Dockerfile, its scripts and compose.yaml: what can be told of them without an engine."""
