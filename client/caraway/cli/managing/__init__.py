"""The commands that talk to a management service."""
