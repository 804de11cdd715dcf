"""The Iceberg table format, version 2: types, statistics of files, manifests and table metadata.

Values and bytes only. Nothing here lists, reads or writes files.
"""
