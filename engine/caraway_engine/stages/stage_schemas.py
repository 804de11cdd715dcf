"""Provides schemas and plan texts to the stage planner, from the engine's own types."""

import re
from collections import OrderedDict
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from threading import Lock

import pyarrow as pa
from datafusion import DataFrame, SessionContext
from datafusion.catalog import Table
from datafusion.substrait import Producer
from substrait.algebra_pb2 import Rel
from substrait.plan_pb2 import Plan
from substrait.type_pb2 import Type

from caraway_core.errors import NotDistributableError
from caraway_engine.stages import fragments, naming
from caraway_engine.stages.inputs import INPUT_PREFIX, INPUT_SCHEMA
from caraway_engine.stages.schemas import plain

_CACHED_LEAVES = 1024
_TOKEN = re.compile(rf"\b[0-9a-f]{{{len(INPUT_PREFIX)}}}(?=s\d)")
_EXCHANGED = re.compile(r"\b(s\d+)\.\1_(?=c\d)")


class StageSchemas:
    """Plans fragments over empty inputs to learn their output schemas."""

    def __init__(
        self,
        context: SessionContext,
        inputs: fragments.Inputs,
        showing: Callable[[], AbstractContextManager[None]] = nullcontext,
    ) -> None:
        """Take what shows tables that only the statement sees."""
        self._showing = showing
        self._context = context
        self._inputs = inputs
        self._known: dict[str, Table] = {}

    def schema(self, plan: bytes, stage: str = "") -> pa.Schema:
        """See `TypeSchemas.schema`."""
        return plain(pa.schema(self._planned(plan).schema()), stage)

    def text(self, plan: bytes) -> str:
        """Describe a fragment as EXPLAIN does, without the tokens that keep names distinct."""
        text = _TOKEN.sub("", str(self._planned(plan).logical_plan().display_indent()))
        return naming.without_marks(_EXCHANGED.sub(r"\1.", text))

    def _planned(self, plan: bytes) -> DataFrame:
        try:
            with self._showing():
                return fragments.plan(self._context, plan, self._inputs, (), self._known)
        except Exception as exc:  # On any engine error, the statement can still run whole.
            raise NotDistributableError(
                f"a part of it cannot be planned ({str(exc).splitlines()[0][:200]})"
            ) from exc

    def leaf(self, name: str, schema: pa.Schema) -> Rel:
        """See `TypeSchemas.leaf`."""
        self._known[name.removeprefix(INPUT_PREFIX)] = self._inputs.empty(schema)
        rel = _read_of(schema)
        del rel.read.named_table.names[:]
        rel.read.named_table.names.extend((INPUT_SCHEMA, name))
        return rel

    def types(self, schema: pa.Schema) -> Sequence[Type]:
        """See `TypeSchemas.types`."""
        return list(_read_of(schema).read.base_schema.struct.types)


_leaves: OrderedDict[pa.Schema, bytes] = OrderedDict()
_lock = Lock()


def _read_of(schema: pa.Schema) -> Rel:
    """Return the engine's Substrait read of a table with this schema."""
    unnamed = plain(schema)
    with _lock:
        if unnamed not in _leaves:
            _leaves[unnamed] = _made(unnamed)
            if len(_leaves) > _CACHED_LEAVES:
                _leaves.popitem(last=False)
        rel = Rel()
        rel.ParseFromString(_leaves[unnamed])
    for place, name in zip(naming.places(rel), schema.names, strict=True):
        rel.read.base_schema.names[place] = name
    return rel


def _made(schema: pa.Schema) -> bytes:
    context = SessionContext()
    context.register_record_batches("leaf", [[pa.RecordBatch.from_pylist([], schema=schema)]])
    plan = Plan()
    logical = context.table("leaf").logical_plan()
    plan.ParseFromString(Producer.to_substrait_plan(logical, context).encode())
    return bytes(plan.relations[0].root.input.SerializeToString())
