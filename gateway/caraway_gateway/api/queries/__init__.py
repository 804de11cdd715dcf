"""The routes of `/v1/queries`: submit a query and fetch its answer later.

`submissions` and `documents` define the wire format, also for Arrow Flight, without a web
framework. `answers` opens stored results, and `routes` has the routes.
"""
