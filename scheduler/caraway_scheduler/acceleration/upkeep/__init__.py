"""Maintenance between refreshes: compaction, snapshots, repair and removal of orphans."""
