"""Building blocks of all HTTP servers: listeners, TLS, keys, gates, bodies and errors."""
