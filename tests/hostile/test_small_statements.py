"""Small statements are answered soon while two clients send hostile requests all the time."""

from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor

import httpx
import pyarrow as pa
import pytest
from adbc_driver_flightsql import dbapi

from tests.hostile import serving, statements
from tests.hostile.serving import Answer, Served, by_http
from tests.hostile.watching import MEASURES, Watcher

pytestmark = [pytest.mark.full, pytest.mark.timeout(600)]
Addresses = dict[str, str]
SENDERS = 2
FEWEST = 100
"""Small statements that are answered meanwhile."""
_VALUES = 20_000
_TEXTS, _CHARACTERS = 2_048, 50_000


def sql(text: str) -> Callable[[Addresses], Answer]:
    return lambda addresses: by_http(text, addresses)


def embeddings(addresses: Addresses) -> Answer:
    body = {"model": "builtin:minilm", "input": ["window river " * (_CHARACTERS // 13)] * _TEXTS}
    url = f"http://{addresses['http']}/v1/embeddings"
    try:
        got = httpx.post(url, json=body, timeout=serving.WITHIN_S)
    except httpx.HTTPError as exc:
        return Answer(0, repr(exc))
    return Answer(got.status_code, got.text[:500])


def prepared(addresses: Addresses) -> Answer:
    """Prepare, bind and run one statement with a parameter for each of many values."""
    marks = ", ".join(f"${number}" for number in range(1, _VALUES + 1))
    values = pa.table({str(number): [number] for number in range(1, _VALUES + 1)})
    try:
        with (
            dbapi.connect(f"grpc://{addresses['flight']}", autocommit=True) as connection,
            connection.cursor() as cursor,
        ):
            cursor.executemany(f"SELECT count(*) AS n FROM t WHERE id IN ({marks})", values)
            cursor.execute(f"SELECT count(*) AS n FROM t WHERE id IN ({marks})", values)
            return Answer(200, str(cursor.fetchall()))
    except dbapi.Error as exc:
        return Answer(500, str(exc))


HOSTILE: Mapping[str, Callable[[Addresses], Answer]] = {
    "levenshtein of long texts": sql(
        "SELECT sum(levenshtein(repeat(name, 2000), repeat(reverse(name), 2000))) FROM t"
    ),
    "cross join": sql(statements.STATEMENTS["cross join"]),
    "regular expression": sql(statements.STATEMENTS["regular expression of rows"]),
    "sort": sql(statements.STATEMENTS["cross join sorted"]),
    "generate_series": sql(statements.STATEMENTS["table function sorted"]),
    "embeddings": embeddings,
    "prepared statement": prepared,
}


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with serving.standalone(tmp_path_factory.mktemp("small")) as made:
        yield made


@pytest.mark.parametrize("name", HOSTILE)
def test_small_statements_are_answered_beside_hostile_requests(served: Served, name: str) -> None:
    running = served.up()
    url = f"http://{running.addresses['http']}"
    answers: list[Answer] = []
    with ThreadPoolExecutor(SENDERS) as senders, Watcher([running.process.pid], url) as seen:

        def send() -> None:
            while len(seen.answered_s) < FEWEST:
                answers.append(HOSTILE[name](running.addresses))

        sending = [senders.submit(send) for _ in range(SENDERS)]
        for each in sending:
            each.result()
    assert [problem for each in answers for problem in each.problems()] == []
    assert running.process.poll() is None
    if MEASURES:
        assert seen.unanswered == []
        assert seen.slow_s <= seen.answers_within_s, (seen.slow_s, seen.slowest_s)
