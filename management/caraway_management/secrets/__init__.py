"""Secrets of organizations and of projects, and the API keys of projects."""
