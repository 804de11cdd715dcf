"""Sources: they inspect data and describe it as a table spec; they run no queries.

The registry refers to classes here, such as `Files`, `Web` and `Memory`; other modules support
them.
"""
