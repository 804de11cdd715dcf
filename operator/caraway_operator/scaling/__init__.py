"""Scaling of executors: autoscaling and draining. Pure decisions without I/O and clock."""
