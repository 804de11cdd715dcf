"""Custom resources as last seen, and the queue of clusters to reconcile."""
