"""`caraway store`: serves chunks from a directory over HTTP, for clusters without object storage.

The store handles names, bytes and checksums. It does not know the contents or owners of chunks.
"""
