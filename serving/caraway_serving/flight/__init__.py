"""Shared parts of Arrow Flight servers: statuses, messages, and the way to the event loop."""
