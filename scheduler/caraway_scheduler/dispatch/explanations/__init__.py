"""Runs and formats EXPLAIN and EXPLAIN ANALYZE of distributed queries."""
