"""Deployments: the versions of projects that run or are about to, and their progress."""
