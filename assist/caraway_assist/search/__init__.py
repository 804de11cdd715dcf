"""Searches tables by meaning and by words.

`searchable` finds out what can be searched in a table, `statements` words a search in SQL, `tables`
runs it, and `service` answers a request over several tables.
"""
