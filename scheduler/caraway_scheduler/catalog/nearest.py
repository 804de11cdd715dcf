"""Finds the table of a source catalog that a wrong name may mean."""

import difflib
from collections.abc import Collection

from caraway_core.ids import TableName


def hint(table: TableName, known: Collection[TableName]) -> str:
    """Return what to add to an error about an unknown name of three parts."""
    catalog, schema, bare = table.split(".", 2)
    if not known:
        return f"; catalog '{catalog}' has no tables"
    schemas = {each.split(".")[1] for each in known}
    if schema not in schemas:
        near = difflib.get_close_matches(schema, schemas, n=1)
        is_meant = f"; did you mean '{near[0]}'?" if near else ""
        return f": catalog '{catalog}' has no schema '{schema}'{is_meant}"
    tables = [each.split(".")[2] for each in known if each.split(".")[1] == schema]
    lower = {each.lower(): each for each in tables}
    near = difflib.get_close_matches(bare.lower(), lower, n=1)
    if not near:
        return f": schema '{catalog}.{schema}' has no table of this name"
    found = lower[near[0]]
    quotes = " Names with capitals need double quotes." if found != found.lower() else ""
    return f"; did you mean '{catalog}.{schema}.{found}'?{quotes}"
