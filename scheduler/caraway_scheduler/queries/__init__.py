"""Running statements: admission, the ones under way, the results cache, and the service of all.

Knows no HTTP; the API turns what is raised here into statuses and bodies.
"""
