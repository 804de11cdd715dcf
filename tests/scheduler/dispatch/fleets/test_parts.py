import asyncio

import pyarrow as pa
import pytest

from caraway_core.errors import PartLostError
from caraway_core.ids import ExecutorId
from caraway_core.protocols import wire
from caraway_core.protocols.fleet import ExchangePart, Input
from caraway_scheduler.dispatch.fleets import parts
from caraway_scheduler.dispatch.fleets.parts import Carried, Held

ONE, TWO = ExecutorId("e1"), ExecutorId("e2")
ROWS = pa.table({"v": [1, 2]})
CARRIED = ExchangePart(Carried(wire.pack_table(ROWS)), ONE, 2, 16)


def held() -> ExchangePart:
    return ExchangePart(Held(object(), asyncio.get_running_loop().create_future()), TWO, 2, 16)


def inputs(*brought: ExchangePart) -> list[Input]:
    return [Input("$x", ROWS.schema, brought), Input("$y", ROWS.schema, (CARRIED,))]


async def test_ray_sends_references_and_tables() -> None:
    part = held()
    reference, *tables = parts.handles(inputs(part, CARRIED))
    assert reference is part.handle.reference
    assert tables == [ROWS, ROWS]
    assert await parts.fetched(tables[0]) is tables[0]


async def test_inputs_are_carried_if_ray_holds_none_of_them() -> None:
    assert parts.packed([]) == []
    assert parts.packed(inputs(CARRIED)) == [CARRIED.handle.packed] * 2
    assert parts.packed(inputs(CARRIED, held())) is None


async def test_only_what_ray_holds_is_lost_with_its_executor() -> None:
    part = held()
    assert parts.makers(inputs(part)) == {part.handle.gone}
    part.handle.gone.set_result(None)
    with pytest.raises(PartLostError, match="executor 'e2' was lost with rows") as caught:
        parts.handles(inputs(part))
    assert caught.value.executor_id == TWO
    parts.require_makers(inputs(CARRIED))


async def test_shapes_name_the_makers() -> None:
    first, second = parts.shapes(inputs(held(), CARRIED))
    assert (first.name, first.makers) == ("$x", (TWO, ONE))
    assert (second.name, second.makers) == ("$y", (ONE,))
