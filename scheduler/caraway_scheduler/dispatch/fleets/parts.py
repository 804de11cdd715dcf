"""Tables of exchanges: in Ray's store, or small and carried by the scheduler itself."""

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from caraway_core.errors import PartLostError
from caraway_core.protocols import wire
from caraway_core.protocols.fleet import ExchangePart, Input
from caraway_core.protocols.wire import InputShape

CARRIED_BYTES = 256 * 1024
"""The most bytes that tasks side by side bring here, if each has its share."""


@dataclass(frozen=True, slots=True, eq=False)
class Held:
    """A table of an exchange in Ray's store, and the loss of the executor that made it."""

    reference: Any
    gone: "asyncio.Future[None]"

    def hex(self) -> str:
        return str(self.reference.hex())


@dataclass(frozen=True, slots=True, eq=False)
class Carried:
    """A table of an exchange in this process, encoded. It outlives the executor that made it."""

    packed: bytes = field(repr=False)


def shapes(inputs: Sequence[Input]) -> list[InputShape]:
    """Return the descriptions of task inputs that an actor needs."""
    return [
        InputShape(each.name, each.schema, tuple(part.executor_id for part in each.parts))
        for each in inputs
    ]


def handles(inputs: Sequence[Input]) -> list[object]:
    """Return what Ray sends to an actor for all parts of the inputs: references, or tables.

    Raises:
        PartLostError: an executor was lost after it had made a part.
    """
    # After Ray was left and joined again, it must not see the references of before.
    require_makers(inputs)
    return [
        part.handle.reference
        if isinstance(part.handle, Held)
        else wire.unpack_table(part.handle.packed)
        for part in _parts(inputs)
    ]


async def fetched(handle: Any) -> pa.Table:
    """Return the table that Ray would send for this."""
    return handle if isinstance(handle, pa.Table) else await handle


def packed(inputs: Sequence[Input]) -> list[bytes] | None:
    """Return the encoded tables of all parts of the inputs; None if Ray holds one of them."""
    tables = [part.handle.packed for part in _parts(inputs) if isinstance(part.handle, Carried)]
    return tables if len(tables) == sum(1 for _ in _parts(inputs)) else None


def makers(inputs: Sequence[Input]) -> "set[asyncio.Future[None]]":
    """Return the futures that complete when a part of the inputs is lost."""
    return {part.handle.gone for part in _parts(inputs) if isinstance(part.handle, Held)}


def require_makers(inputs: Sequence[Input]) -> None:
    """Check that no executor was lost after it had made a part of the inputs.

    Raises:
        PartLostError: one was.
    """
    for part in _parts(inputs):
        if isinstance(part.handle, Held) and part.handle.gone.done():
            name = part.executor_id
            raise PartLostError(f"executor '{name}' was lost with rows of the query", name)


def _parts(inputs: Sequence[Input]) -> Iterator[ExchangePart]:
    return (part for each in inputs for part in each.parts)
