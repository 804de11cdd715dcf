"""Tables, their facts, and plans over them."""

from collections.abc import Mapping
from typing import Any

import pyarrow as pa
from datafusion import SessionContext

from caraway_core.ids import TableName
from caraway_engine.join_orders import FactsOf, sampled
from caraway_engine.statements import plan_nodes

COUNT = 60_000
TABLES = {
    "facts": pa.table(
        {
            "f": range(COUNT),
            "d": [number * 7 % 5_000 for number in range(COUNT)],
            "v": [number % 11 for number in range(COUNT)],
        }
    ),
    "others": pa.table({"f": range(COUNT), "w": [number % 13 for number in range(COUNT)]}),
    "middle": pa.table({"d": range(5_000), "k": [number % 50 for number in range(5_000)]}),
    "kinds": pa.table({"k": range(50), "name": [f"n{number}" for number in range(50)]}),
}


def context(tables: Mapping[str, pa.Table] = TABLES) -> SessionContext:
    made = SessionContext()
    for name, rows in tables.items():
        made.register_record_batches(name, [rows.to_batches()])
    return made


def facts_of(tables: Mapping[str, pa.Table] = TABLES) -> FactsOf:
    known = {
        TableName(name): sampled.facts(each.schema, each.to_batches())
        for name, each in tables.items()
    }
    return known.get


def kinds(plan: Any) -> list[str]:
    """Return the joins and tables of a plan, root first."""
    found = []
    for node in plan_nodes.nodes(plan):
        if node.kind == "Join":
            found.append(str(node.variant.join_type()))
        elif node.kind == "TableScan":
            found.append(node.variant.table_name())
    return found
