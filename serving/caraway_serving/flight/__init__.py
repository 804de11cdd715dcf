"""What every Arrow Flight server needs: statuses, messages, and the way to the event loop."""
