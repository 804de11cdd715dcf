"""`/v1/queries`: submit a query, come back for its answer.

`submissions` and `documents` say what goes over the wire, over Arrow Flight too, and know no web
framework; `answers` opens what is stored, `routes` are the routes.
"""
