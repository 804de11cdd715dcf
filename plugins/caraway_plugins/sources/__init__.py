"""Sources: they look at data and describe it as a table spec. Nothing here runs a query.

`files`, `web` and `memory` are what the registry names; the other modules serve them.
"""
