"""Sections of manifest files that become other values: datasets, views, tools and the like."""
