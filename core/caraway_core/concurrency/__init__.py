"""Background tasks with an owner, waits between attempts, and quotas of what is shared."""
