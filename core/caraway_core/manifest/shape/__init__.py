"""Pydantic models of manifest files: keys, types and checks of single values.

Only the manifest package uses them; `building` converts them to plain values.
"""
