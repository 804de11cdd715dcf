"""JSON that users send: its size before it is parsed, and strict parsing."""
