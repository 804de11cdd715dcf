"""The MCP endpoint: the tools of this runtime for MCP clients, with the rights of their key.

The MCP library takes a second to import, so only `serving` imports it, when the first client comes.
"""
