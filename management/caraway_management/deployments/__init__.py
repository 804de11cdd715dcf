"""Deployments: what is to run for a project, and how far it is."""
