"""Maintenance between refreshes: compaction, snapshots, repair and orphan collection."""
