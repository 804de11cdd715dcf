"""Proves that distributed answers equal single-node answers. No product code and no network."""
