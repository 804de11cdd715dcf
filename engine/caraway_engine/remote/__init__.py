"""Remote tables: decides what runs in the database, reads its rows, and inserts rows.

`words` generates SQL in the dialect of a database, and only what it answers as the engine does.
`relations` translates plans, and `filters` the filters that the engine pushes into a scan.
`datasets` are the tables that the engine scans, and `pushing` replaces whole subtrees of a plan.
`writing` hands the rows of an INSERT to the plug-in.
"""
