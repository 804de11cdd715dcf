"""The chart, rendered by real Helm 3 and 4."""
