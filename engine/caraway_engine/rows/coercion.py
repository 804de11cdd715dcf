"""Finds the types of a statement's rows, which may differ from those that its plan announces."""

from typing import Any

import pyarrow as pa
from datafusion import SessionContext


def schema(context: SessionContext, dataframe: Any, optimized: Any = None) -> pa.Schema:
    """Return the schema of the rows of a planned statement.

    DataFusion announces a plan's schema before it coerces operands and the sides of unions to one
    type. `optimized` is the optimized plan, if it is already known.
    """
    announced = pa.schema(dataframe.schema())
    return of_optimized(context, optimized or dataframe.optimized_logical_plan(), announced)


def of_optimized(context: SessionContext, optimized: object, announced: pa.Schema) -> pa.Schema:
    """Return the announced schema with the types of the optimized plan."""
    types = pa.schema(context.create_dataframe_from_logical_plan(optimized).schema())
    return pa.schema(
        [name.with_type(each.type) for name, each in zip(announced, types, strict=True)]
    )
