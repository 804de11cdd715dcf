"""Turns questions into SQL: what a model is told of the data, and how its statements are tried."""
