"""The embedding models of a scheduler: their states, and calls of them."""
