"""Tools that models and MCP clients call: their protocol, the registry, and every kind of tool.

What a tool does with data goes through `data_access`, which the scheduler implements. Nothing here
knows HTTP routes, SQL engines or Ray.
"""
