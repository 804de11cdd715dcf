"""The datasets and views of the manifest as tables and views of Iceberg: names, metadata, files.

Routes word what is here for clients. The table format itself is in `caraway_plugins.iceberg`.
"""
