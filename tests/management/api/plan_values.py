"""A plan with small limits."""

SMALL = {
    "apps": -1, "replicas": 1, "pods": 1, "users": 2, "api_rps": 10, "request_timeout_secs": 10,
    "sql_query_timeout_secs": 10, "sql_concurrent_queries": 2, "resources": None,
}  # fmt: skip
