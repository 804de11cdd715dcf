"""Indexes, analysis and fusion for search; it knows neither SQL nor HTTP nor Ray."""
