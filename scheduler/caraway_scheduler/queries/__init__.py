"""Runs synchronous statements: admission, active queries, results cache and query service.

This package does not depend on HTTP. The API maps the errors raised here to statuses and bodies.
"""
