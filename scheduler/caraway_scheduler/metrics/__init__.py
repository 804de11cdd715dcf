"""The metrics page: families of metrics read from state at scrape time."""
