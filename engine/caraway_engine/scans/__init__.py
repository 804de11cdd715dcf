"""Reads files and object stores as DataFusion tables."""
