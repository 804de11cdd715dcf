"""Texts of a manifest as values: scalars, units, names, types, paths and places."""
