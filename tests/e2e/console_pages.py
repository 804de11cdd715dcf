"""The pages of the console, with a text that each shows."""

PAGES = (
    "Home", "SQL", "Data", "Queries and jobs", "Cluster", "Search", "Chat and questions",
    "Tools and MCP", "Functions, models, workers",
)  # fmt: skip
