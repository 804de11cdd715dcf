"""Searches tables by meaning and by words.

`searchable` finds the searchable columns of a table, `statements` generates the SQL of a search,
`tables` runs it, and `service` answers a request over several tables.
"""
