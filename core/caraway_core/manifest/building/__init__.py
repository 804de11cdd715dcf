"""Converts the checked shape of a manifest into values and applies the defaults."""
