"""The SQL engine: sessions, statements and tables. The only importer of DataFusion.

It knows nothing about HTTP, manifests or principals.
"""
