"""Answers searches over the rows in memory: segments of indexes, kept as long as their rows.

The engine gives the rows and evaluates filters; `caraway_search` builds and searches segments.
"""
