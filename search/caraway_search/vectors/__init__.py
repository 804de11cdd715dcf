"""Vector indexes: immutable segments with small codes of vectors, and exact scores in 64 bits.

The vectors stay in their Arrow arrays; a segment holds the codes that select the few vectors whose
scores are computed exactly.
"""
