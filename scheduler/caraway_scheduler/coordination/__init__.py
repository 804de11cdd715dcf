"""Shared by the packages above: claims among schedulers, timetables, freshness of reads."""
