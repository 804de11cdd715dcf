"""Packages: a manifest and the files that it refers to, from a git repository or a folder."""
