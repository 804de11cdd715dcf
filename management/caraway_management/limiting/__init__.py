"""Puts the limits of plans in force."""
