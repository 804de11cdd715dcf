"""Vector indexes: immutable segments with small codes of vectors, and exact scores in 64 bits.

The vectors stay in the Arrow arrays that they came in; a segment holds what is needed to find a few
of them that are worth an exact look.
"""
