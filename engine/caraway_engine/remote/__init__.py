"""Tables that a database keeps: which part of a statement runs there, and how its rows come here.

`words` makes SQL of what the database is known to answer as the engine does; nothing else is sent.
`relations` reads plans, `filters` what the engine pushes into a scan. `datasets` are the tables
that the engine scans, and `pushing` replaces whole subtrees of a plan.
"""
