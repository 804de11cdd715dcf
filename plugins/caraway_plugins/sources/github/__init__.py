"""Datasets that are issues, pull requests, commits, stargazers or files of a GitHub repository."""
