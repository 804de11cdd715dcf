"""The routes as tools of MCP: the same verbs, the same scopes, the same answers."""
