"""The `caraway` command and the Python client library.

Imports `caraway_core` only. The runtime's own commands are loaded by name when they are used, so
`pip install caraway` without extras installs a complete client.
"""
