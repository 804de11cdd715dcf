"""Substrait plans as clients send them: by DataFusion's producer, and by hand."""

from collections.abc import Mapping
from typing import Any

import pyarrow as pa
from datafusion import SessionContext
from datafusion.substrait import Producer
from google.protobuf import json_format
from substrait.plan_pb2 import Plan

JsonObject = dict[str, Any]
STANDARD = "extension:io.substrait:functions_arithmetic"
I64: JsonObject = {"i64": {}}


def produced(sql: str, tables: Mapping[str, pa.Table], *, optimized: bool = True) -> bytes:
    """Return the plan that DataFusion makes of a statement."""
    context = SessionContext()
    for name, rows in tables.items():
        context.register_record_batches(name, [rows.to_batches()])
    return produced_in(context, sql, optimized=optimized)


def produced_in(context: SessionContext, sql: str, *, optimized: bool) -> bytes:
    frame = context.sql(sql)
    plan = frame.optimized_logical_plan() if optimized else frame.logical_plan()
    return bytes(Producer.to_substrait_plan(plan, context).encode())


class Handwritten:
    """A plan whose functions are declared when they are called first."""

    def __init__(self, urn: str | None = STANDARD, producer: str = "hand") -> None:
        self._urn = urn
        self._producer = producer
        self._anchors: dict[str, int] = {}

    def call(
        self, name: str, *arguments: JsonObject, type_: JsonObject | None = None
    ) -> JsonObject:
        """Return a call of a scalar function."""
        return {"scalarFunction": self.function(name, *arguments, type_=type_)}

    def function(
        self, name: str, *arguments: JsonObject, type_: JsonObject | None = None, **more: Any
    ) -> JsonObject:
        anchor = self._anchors.setdefault(name, len(self._anchors) + 1)
        values = [{"value": each} for each in arguments]
        found: JsonObject = {"functionReference": anchor, "arguments": values, **more}
        return found if type_ is None else {**found, "outputType": type_}

    def plan(self, rel: JsonObject, *names: str, **more: Any) -> bytes:
        """Return the plan whose root is a relation, with the names of its columns."""
        urns = [] if self._urn is None else [{"extensionUrnAnchor": 1, "urn": self._urn}]
        reference = 1 if urns else 0
        document = {
            "version": {"minorNumber": 100, "producer": self._producer},
            "extensionUrns": urns,
            "extensions": [
                {
                    "extensionFunction": {
                        "extensionUrnReference": reference,
                        "functionAnchor": anchor,
                        "name": name,
                    }
                }
                for name, anchor in self._anchors.items()
            ],
            "relations": [{"root": {"input": rel, "names": list(names)}}],
            **more,
        }
        return bytes(json_format.ParseDict(document, Plan()).SerializeToString())


def plan(rel: JsonObject, *names: str, **more: Any) -> bytes:
    """Return a plan without functions."""
    return Handwritten().plan(rel, *names, **more)


def read(table: str, **columns: str | JsonObject) -> JsonObject:
    """Return a read of columns by their types; texts are types without parameters."""
    types = [{each: {}} if isinstance(each, str) else each for each in columns.values()]
    schema = {"names": list(columns), "struct": {"types": types}}
    return {"read": {"baseSchema": schema, "namedTable": {"names": table.split(".")}}}


def field(place: int, **more: Any) -> JsonObject:
    reference = {"structField": {"field": place}}
    return {"selection": {"directReference": reference, **(more or {"rootReference": {}})}}


def literal(**value: Any) -> JsonObject:
    return {"literal": value}


def project(rel: JsonObject, *expressions: JsonObject, emit: list[int]) -> JsonObject:
    common = {"emit": {"outputMapping": emit}}
    return {"project": {"input": rel, "expressions": list(expressions), "common": common}}
