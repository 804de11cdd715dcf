"""What Caraway is on Kubernetes: the resource's model, the objects made of it, the process that keeps them.

Imports core only; kopf is known to handlers/ and command.py alone.
"""
