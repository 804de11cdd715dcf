"""The management service: organizations, projects and their deployments."""
