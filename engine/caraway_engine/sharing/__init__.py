"""Divides the rows of tables among tasks, and makes plans read only one task's share."""
