"""Arrow Flight: connections, prepared statements, and streams that are read ahead."""
