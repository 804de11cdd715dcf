"""Rows of tasks on their way: collected, read page by page, or offered to clients."""
