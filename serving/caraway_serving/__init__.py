"""What every HTTP server of Caraway is made of: listeners, TLS, keys, gates, bodies and errors."""
