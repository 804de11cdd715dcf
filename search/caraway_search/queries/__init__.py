"""Text queries: what a user types, as a tree of values. Any text is a query; none is an error."""
