import asyncio
import subprocess
import sys
from pathlib import Path

import pytest

from caraway_core.errors import OverloadedError
from caraway_core.statements import Statement
from caraway_executor.statements.products import Products
from tests.executor import runaways
from tests.kit.engine import memory, rows, session


class Cpu:
    """Time that the test makes pass."""

    seconds = 0.0
    step = 1.0

    def __call__(self) -> float:
        self.seconds += self.step
        return self.seconds


async def test_whole_answer_gives_its_place_back_at_once() -> None:
    products = Products(1)
    await products.enter()
    products.leave(is_whole=True)
    await asyncio.wait_for(products.enter(), 60)


async def test_place_of_a_cancelled_product_is_kept_while_the_process_is_busy() -> None:
    cpu = Cpu()
    products = Products(1, cpu, look_s=0.001)
    await products.enter()
    products.leave(is_whole=False)
    waiting = asyncio.create_task(products.enter())
    await asyncio.wait((waiting,), timeout=0.05)
    assert not waiting.done()
    cpu.step = 0.0
    await asyncio.wait_for(waiting, 60)


async def test_wait_for_a_place_is_bounded() -> None:
    products = Products(1, longest_s=0.02)
    await products.enter()
    with pytest.raises(OverloadedError, match="join on equal keys"):
        await products.enter()


async def test_products_in_the_background_have_places_of_their_own() -> None:
    products = Products(1, longest_s=0.02)
    await products.enter(in_background=True)
    await products.enter()
    products.leave(is_whole=True, in_background=True)
    await products.enter(in_background=True)
    with pytest.raises(OverloadedError):
        await products.enter()


@pytest.mark.parametrize(
    ("sql", "is_product"),
    [
        ("SELECT * FROM t a JOIN t b ON a.k = b.k", False),
        ("SELECT * FROM t a JOIN t b ON a.k = b.k AND a.k < b.v", False),
        ("SELECT * FROM t a, t b WHERE a.k = b.k", False),
        ("SELECT * FROM t WHERE k IN (SELECT k FROM t)", False),
        ("SELECT 'Cross Join:' AS x", False),
        ("SELECT * FROM t a CROSS JOIN t b", True),
        ("SELECT * FROM t a LEFT JOIN t b ON a.k < b.k", True),
        ("SELECT * FROM t a WHERE EXISTS (SELECT 1 FROM t b WHERE b.k > a.k)", True),
        ("SELECT * FROM crossed", True),
    ],
)
def test_joins_without_equal_keys_are_products(sql: str, is_product: bool) -> None:
    made = session(
        {"t": memory(k=[1, 2], v=[3, 4]), "crossed": "SELECT a.k FROM t a CROSS JOIN t b"}
    )
    assert made.start(Statement(sql, {})).is_product is is_product


async def test_products_give_the_right_rows() -> None:
    made = session({"t": memory(k=[1, 2, 3])})
    sql = "SELECT a.k AS a, b.k AS b FROM t a LEFT JOIN t b ON a.k < b.k ORDER BY 1, 2"
    assert [tuple(row.values()) for row in await rows(made, sql)] == [
        (1, 2), (1, 3), (2, 3), (3, None),
    ]  # fmt: skip


def test_cancelled_products_leave_the_others_their_threads() -> None:
    done = subprocess.run(
        [sys.executable, "-m", runaways.__name__], capture_output=True, text=True, timeout=60,
        cwd=Path(__file__).parents[3],
    )  # fmt: skip
    assert done.stdout == "[[{'k': 1}]]\n", done.stderr
