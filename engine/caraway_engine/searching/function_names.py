"""The names of the functions of searches, for those who word statements without the engine."""

VECTOR_SCORE = "caraway_vector_score"
BEST_VECTOR_SCORE = "caraway_best_vector_score"
BEST_CHUNK = "caraway_best_chunk"
TEXT_SCORE = "caraway_text_score"
TEXT_STATISTICS = "caraway_text_statistics"
STATISTICS_SUM = "caraway_text_statistics_sum"
"""Adds up the statistics of the shares of a table."""
SCALARS = (VECTOR_SCORE, BEST_VECTOR_SCORE, BEST_CHUNK, TEXT_SCORE)
AGGREGATES = (TEXT_STATISTICS, STATISTICS_SUM)
