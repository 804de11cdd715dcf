"""Deploys projects as `CarawayCluster` objects. The operator does the rest."""
