"""The metrics page: metric families that are read from state at scrape time."""
