"""The management service: organizations, projects and what is deployed of them."""
