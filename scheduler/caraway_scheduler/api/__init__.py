"""The HTTP API: one module or package for each family of routes, all of them in `routers`.

A route parses, calls one service function and serialises. Domain code knows no HTTP.
"""
