"""Caraway on Kubernetes: what users write, the objects made of it, the process that keeps them so.

Imports core only; kopf is known to handlers/ and command.py alone.
"""
