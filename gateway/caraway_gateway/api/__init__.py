"""The HTTP API: one module or package for each family of routes.

A route parses the request, calls one service function and serialises the result. Domain code does
not depend on HTTP.
"""
