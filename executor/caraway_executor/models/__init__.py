"""Models that schedulers have this executor host, and calls of them."""
