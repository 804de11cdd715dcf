"""Converts the sections of datasets and views into values and applies the defaults."""
