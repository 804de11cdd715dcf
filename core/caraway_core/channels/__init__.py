"""Messages between two processes over a socket, and the proof that both know the same token."""
