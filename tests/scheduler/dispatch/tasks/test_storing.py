from collections.abc import Sequence

import pyarrow as pa
import pytest

from caraway_core.errors import (
    AnswerCutError,
    CarawayError,
    CatalogMovedError,
    ExecutionError,
    ExecutorLostError,
    ResultTooLargeError,
)
from caraway_core.ids import CatalogVersion, ExecutorId
from caraway_core.protocols.dispatch import BatchStream
from caraway_core.protocols.results import ChunkInfo
from caraway_core.protocols.storing import (
    StoredChunk,
    StoreOrder,
    begun,
    in_order,
    pack,
    stored_schema,
)
from caraway_core.tables import ResultPlace
from caraway_scheduler.dispatch.tasks.storing import Attempts, PersistentWord, StoredTotal
from tests.kit.storing import Rows, words

WORD = stored_schema(pa.schema([("n", pa.int64())]))
LOST = ExecutorLostError(ExecutorId("e1"), "killed")
ORDER = StoreOrder(ResultPlace("file", "/r"), "k")


def chunk(index: int, attempt: int = 0, task: int = 0, size_bytes: int = 100) -> StoredChunk:
    return StoredChunk(task, attempt, ChunkInfo(index, 10, size_bytes, f"{attempt}{index}"))


def word(chunks: Sequence[StoredChunk], error: Exception | None = None) -> Rows:
    return Rows([pack([each], WORD) for each in chunks], WORD, error)


def persistent(tries: Sequence[Rows | CarawayError], attempts: Attempts) -> PersistentWord:
    """Return chunk records whose attempts are given; later ones follow a loss."""
    left = iter(tries)

    async def again(_cause: CarawayError | None = None) -> BatchStream:
        attempts.another()
        found = next(left)
        if isinstance(found, CarawayError):
            raise found
        return found

    attempts.another()
    first = next(left)
    assert isinstance(first, Rows)
    return PersistentWord(first, attempts, again, len(tries) - 1)


def test_each_attempt_has_its_own_order() -> None:
    attempts = Attempts(ORDER, task=4)
    assert [attempts.another().attempt for _ in range(3)] == [0, 1, 2]
    assert (attempts.last.task, attempts.last.attempt) == (4, 2)


async def test_chunks_of_a_lost_attempt_do_not_count() -> None:
    lost = word([chunk(0), chunk(1)], error=LOST)
    stream = persistent([lost, word([chunk(0, 1)])], Attempts(ORDER))
    found = await words(stream)
    assert found == [chunk(0), chunk(1), begun(0, 1), chunk(0, 1)]
    assert [each.checksum for each in in_order(found)] == ["10"]
    assert lost.is_closed


async def test_attempt_without_rows_counts_too() -> None:
    stream = persistent([word([chunk(0)], error=LOST), word([])], Attempts(ORDER))
    assert in_order(await words(stream)) == []


async def test_attempts_are_bounded() -> None:
    tries = [word([chunk(0, number)], error=LOST) for number in range(3)]
    with pytest.raises(ExecutorLostError):
        await words(persistent(tries, Attempts(ORDER)))
    assert all(each.is_closed for each in tries)


async def test_failure_of_the_statement_is_not_retried() -> None:
    failing = word([chunk(0)], error=ExecutionError("division by zero"))
    with pytest.raises(ExecutionError, match="division by zero"):
        await words(persistent([failing, word([])], Attempts(ORDER)))


async def test_answer_over_tables_that_are_gone_is_cut_short() -> None:
    tries: list[Rows | CarawayError] = [
        word([chunk(0)], error=LOST),
        CatalogMovedError(CatalogVersion(1)),
    ]
    with pytest.raises(AnswerCutError, match=r"'e1' is lost.*the tables have changed"):
        await words(persistent(tries, Attempts(ORDER)))


def test_total_counts_all_tasks_and_of_each_the_last_attempt() -> None:
    total = StoredTotal(250)
    assert total.add(pack([chunk(0), chunk(0, task=1)], WORD)) == (20, 200)
    assert total.add(pack([begun(1, 1)], WORD)) == (0, 0)
    assert total.add(pack([chunk(0, 1, task=1)], WORD)) == (10, 100)
    with pytest.raises(ResultTooLargeError, match="300 bytes"):
        total.add(pack([chunk(1)], WORD))
