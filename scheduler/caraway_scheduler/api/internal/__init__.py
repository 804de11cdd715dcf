"""What operators of a cluster ask and tell a scheduler, on the metrics port; no user comes here."""
