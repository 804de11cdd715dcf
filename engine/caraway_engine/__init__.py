"""The SQL engine: sessions, statements, tables and result formats. The only importer of DataFusion.

It knows nothing about HTTP, manifests or principals.
"""
