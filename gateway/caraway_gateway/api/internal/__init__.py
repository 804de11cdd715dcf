"""Internal routes for the operators of a cluster, on the metrics port."""
