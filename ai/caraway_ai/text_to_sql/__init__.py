"""Turns questions into SQL: describes the data for a model, and tries the SQL that it writes."""
