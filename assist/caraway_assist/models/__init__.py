"""The models of the manifest: their states, their limits, and calls of them."""
