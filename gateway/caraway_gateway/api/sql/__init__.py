"""The routes of `/v1/sql`: run a statement, list running statements, cancel one."""
