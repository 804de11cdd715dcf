"""The shape of manifest files as pydantic models: keys, types and single-value checks only.

Nothing outside the manifest package sees these; `building` turns them into plain values.
"""
