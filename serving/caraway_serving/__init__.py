"""Building blocks of all HTTP servers: listeners, TLS, keys, gates, bodies, formats and errors."""
