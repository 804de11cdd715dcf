"""Versions of accelerated datasets in the state store: made, published, read and removed."""
