"""Text indexes: immutable segments of postings, and scores by BM25 with given statistics.

A segment knows its own rows and nothing of the table that they belong to. What a score needs of the
whole table comes as `TextStatistics`, so any split of a table into segments gives the same scores.
"""
