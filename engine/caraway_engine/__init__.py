"""The SQL engine: the only importer of DataFusion. Sessions, statements, tables, wire formats.

Knows nothing of HTTP, of manifests, or of who is asking.
"""
