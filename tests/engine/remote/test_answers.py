"""Answers of databases as tables: the statements sent, their number, and their end."""

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

import pyarrow as pa
import pytest
from datafusion import SessionConfig, SessionContext

from caraway_core.errors import ExecutionError, UnknownPluginError
from caraway_core.tables import RemoteColumn, RemoteTable
from caraway_core.work import SourceQuery
from caraway_engine.errors import failing
from caraway_engine.remote import answers
from caraway_engine.remote.answers import AnswerDataset, AnswerReading

SCHEMA = pa.schema([("id", pa.int64()), ("word", pa.string())])
TABLE = RemoteTable(
    SCHEMA,
    "counted",
    ("t",),
    (RemoteColumn("id", pa.int64(), True), RemoteColumn("word", pa.string(), True)),
    {},
)
ANSWER = SourceQuery(TABLE, "SELECT id, word FROM t", SCHEMA)
BATCHES = [
    pa.record_batch({"id": [1, 2], "word": ["a", None]}, schema=SCHEMA),
    pa.record_batch({"id": [], "word": []}, schema=SCHEMA),
    pa.record_batch({"id": [3, None], "word": ["b", "c"]}, schema=SCHEMA),
]


@dataclass
class Sent:
    """One statement: its rows, and whether it was begun and closed."""

    batches: list[pa.RecordBatch]
    error: Exception | None
    begun: int = 0
    closed: int = 0

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        self.begun += 1
        yield from self.batches
        if self.error is not None:
            raise self.error

    def close(self) -> None:
        self.closed += 1


@dataclass
class Counting:
    """A reader that remembers every statement."""

    batches: list[pa.RecordBatch] = field(default_factory=lambda: list(BATCHES))
    error: Exception | None = None
    sent: list[Sent] = field(default_factory=list)

    def read(self, table: RemoteTable, sql: str, schema: pa.Schema) -> Sent:
        assert (table, sql, schema) == (TABLE, ANSWER.sql, SCHEMA)
        self.sent.append(Sent(self.batches, self.error))
        return self.sent[-1]


@pytest.fixture
def reader() -> Counting:
    made = Counting()
    answers.use("counted", made)
    return made


def rows(sql: str, dataset: AnswerDataset) -> list[dict[str, object]]:
    context = SessionContext(SessionConfig().with_target_partitions(2))
    context.register_table("t", answers.table(dataset))
    found: list[dict[str, object]] = context.sql(sql).to_arrow_table().to_pylist()
    return found


@pytest.mark.parametrize(
    ("sql", "found"),
    [
        ("SELECT id FROM t WHERE id > 1 ORDER BY id", [{"id": 2}, {"id": 3}]),
        ("SELECT word FROM t WHERE word IS NULL", [{"word": None}]),
        ("SELECT count(*) AS n FROM t", [{"n": 4}]),
        ("SELECT count(id) AS n FROM t WHERE word <> 'a'", [{"n": 1}]),
        ("SELECT word, id FROM t WHERE id IN (1, 9)", [{"word": "a", "id": 1}]),
        ("SELECT sum(id) AS s FROM t WHERE id + 1 = 3", [{"s": 2}]),
        ("SELECT id FROM t WHERE false", []),
        ("SELECT l.id FROM t l JOIN t r ON l.id = r.id ORDER BY 1",
         [{"id": 1}, {"id": 2}, {"id": 3}]),
    ],
)  # fmt: skip
def test_an_answer_is_a_table(reader: Counting, sql: str, found: list[dict[str, object]]) -> None:
    assert rows(sql, AnswerDataset(ANSWER)) == found
    assert all(each.closed for each in reader.sent)


def test_the_first_scan_takes_what_was_begun_and_others_send_again(reader: Counting) -> None:
    dataset = AnswerDataset(ANSWER)
    dataset.reading.send_statement()
    dataset.reading.send_statement()
    assert [each.begun for each in reader.sent] == [1]
    assert len(rows("SELECT * FROM t", dataset)) == 4
    assert len(reader.sent) == 1
    assert len(rows("SELECT * FROM t", dataset)) == 4
    assert len(reader.sent) == 2


def test_scans_at_the_same_time_share_no_read(reader: Counting) -> None:
    for _ in range(50):
        dataset = AnswerDataset(ANSWER)
        ready = threading.Barrier(4)

        def take(
            dataset: AnswerDataset = dataset, ready: threading.Barrier = ready
        ) -> AnswerReading:
            ready.wait()
            return dataset.taken()

        with ThreadPoolExecutor(4) as threads:
            taken = [each.result() for each in [threads.submit(take) for _ in range(4)]]
        assert len(set(map(id, taken))) == 4
        assert any(each is dataset.reading for each in taken)


def test_a_read_gives_every_batch_once(reader: Counting) -> None:
    reading = AnswerReading(ANSWER)
    found = []
    while (batch := reading.next()) is not None:
        found.append(batch)
    assert found == BATCHES
    assert reading.next() is None


def test_nothing_is_sent_before_the_first_row_is_asked_for(reader: Counting) -> None:
    reading = AnswerReading(ANSWER)
    reading.close()
    assert reader.sent == []
    assert reading.next() is None
    assert [each.begun for each in reader.sent] in ([], [0])


def test_closing_ends_the_statement_once_it_runs(reader: Counting) -> None:
    reading = AnswerReading(ANSWER)
    reading.send_statement()
    reading.close()
    assert reader.sent[0].closed >= 1


def test_a_scan_that_fails_tells_why_and_closes(reader: Counting) -> None:
    reader.error = ExecutionError("the database is away")
    with pytest.raises(Exception, match="RemoteFailure") as caught:
        rows("SELECT count(word) FROM t", AnswerDataset(ANSWER))
    assert failing.found(str(caught.value)) is reader.error
    assert reader.sent[0].closed == 1


def test_a_scan_that_is_left_closes(reader: Counting) -> None:
    scan = AnswerDataset(ANSWER).scanner(columns=["id"])
    batches = scan.to_batches()
    assert next(batches).to_pydict() == {"id": [1, 2]}
    batches.close()
    assert reader.sent[0].closed == 1


def test_an_unknown_kind_of_table_is_named() -> None:
    with pytest.raises(UnknownPluginError, match="nothing_of_this_name"):
        answers.reader("nothing_of_this_name")
