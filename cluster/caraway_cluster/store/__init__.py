"""`caraway store`: a folder of result chunks behind HTTP, for clusters without an object store.

It knows names, bytes and checksums; what chunks hold, and for whom, it does not know.
"""
