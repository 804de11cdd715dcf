"""The types that rows have in the end, which are not always those that a plan announces."""

from typing import Any

import pyarrow as pa
from datafusion import SessionContext


def schema(context: SessionContext, dataframe: Any, optimized: Any = None) -> pa.Schema:
    """Return the schema of the rows that a planned statement gives.

    DataFusion announces a plan before operands and the sides of unions are brought to one type.
    `optimized` is the optimized plan, if it is known.
    """
    announced = pa.schema(dataframe.schema())
    return of_optimized(context, optimized or dataframe.optimized_logical_plan(), announced)


def of_optimized(context: SessionContext, optimized: Any, announced: pa.Schema) -> pa.Schema:
    """Give what was announced the types of the optimized plan."""
    types = pa.schema(context.create_dataframe_from_logical_plan(optimized).schema())
    return pa.schema(
        [name.with_type(each.type) for name, each in zip(announced, types, strict=True)]
    )
