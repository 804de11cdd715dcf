"""The table catalog: loads of many files, scans by PyIceberg, exports, and queries beside them."""

import contextlib
import http.client
import json
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import yaml

from bench import asking, children, data, servers
from bench.report import Figure, Section
from bench.settings import Settings

_FILES, _COLUMNS = 10_000, 16
_KINDS = 100
"""The number of files that differ."""
_ROWS = 10_000_000
_RUNS = 3
_SCANS = 5
_LOADED_S = 300.0
_LOAD_GOAL, _AGAIN_GOAL_S = 2.0, 0.02
_SCAN_GOAL, _TASK_GOAL_S, _EXPORT_GOAL, _BESIDE_GOAL = 1.1, 1.0, 0.7, 1.2
_TEXT = (
    "Medians of three rounds (scans: five), in turn with the alternative, which works in a process "
    "of its own. The table that PyIceberg wrote has two files with row groups of a million rows; "
    "an export has 34 files with one of 190,000 each. Small statements go past the results cache."
)
_SMALL = "SELECT count(*) AS n, sum(v) AS s FROM small WHERE v > 100"


def measure(settings: Settings) -> Section:
    """Measure loads, scans and exports against what pyarrow and PyIceberg do with equal rows."""
    with TemporaryDirectory() as folder:
        figures = [
            *_loads(Path(folder) / "loads"),
            *_scans(Path(folder) / "scans", settings.scale),
            *_exports(Path(folder) / "exports"),
        ]
    return Section("catalog", figures, _TEXT)


def _loads(folder: Path) -> Iterator[Figure]:
    files = folder / "files"
    _write_many(files)
    names = [f"t{number}" for number in range(_RUNS + 1)]
    tables = [{"from": f"file:{files}/", "name": name} for name in names]
    with _runtime(folder, *tables) as url, _rival("list", files) as theirs:
        *timed, beside = names
        pairs = [(_seconds(partial(_load, url, name)), theirs()) for name in timed]
        first, listed = (statistics.median(each) for each in zip(*pairs, strict=True))
        again = statistics.median(_seconds(lambda: _load(url, timed[0])) for _ in range(20))
        yield Figure(
            f"a table of {_FILES:,} Parquet files of {_COLUMNS} columns, first load; "
            "pyarrow listing them with their statistics",
            f"{first:.2f} s", f"{listed:.2f} s", first / listed, f"≤ {_LOAD_GOAL:g}",
            first <= _LOAD_GOAL * listed,
        )  # fmt: skip
        yield Figure(
            "the same table, later loads; the goal of 20 ms",
            f"{again * 1000:.1f} ms", "20 ms", again / _AGAIN_GOAL_S, "≤ 1", again <= _AGAIN_GOAL_S,
        )  # fmt: skip
        yield _beside("a first load of 10,000 files", url, lambda: _load(url, beside), theirs)


def _scans(folder: Path, scale: str) -> Iterator[Figure]:
    """Compare a table that PyIceberg wrote with the same files here, and with an export of them."""
    folder.mkdir()
    own = folder / "own"
    own.mkdir()
    _pyiceberg("write", own, data.plain_strings(data.tpch(scale)) / "lineitem.parquet")
    in_place = {"from": f"file:{own}/**/*.parquet", "name": "lineitem"}
    kept = {**in_place, "name": "kept", "acceleration": {"enabled": True}}
    with _runtime(folder, in_place, kept) as url:
        _load(url, "kept")
        answer = _pyiceberg("scan", own, url, _SCANS, "lineitem", "kept")
    seconds = {name: statistics.median(each) for name, each in json.loads(answer).items()}
    for name, title in (("lineitem", "its files in place"), ("kept", "an export")):
        yield Figure(
            f"full scan of lineitem, scale {scale}, by PyIceberg: {title}; "
            "the table that PyIceberg wrote",
            f"{seconds[name]:.2f} s", f"{seconds['own']:.2f} s", seconds[name] / seconds["own"],
            f"≤ {_SCAN_GOAL:g}", seconds[name] <= _SCAN_GOAL * seconds["own"],
        )  # fmt: skip


def _pyiceberg(*arguments: object) -> str:
    command = [children.other_python("iceberg"), "-m", "bench.rivals.iceberg_scan"]
    ran = subprocess.run(
        [*map(str, (*command, *arguments))], check=True, stdout=subprocess.PIPE, text=True
    )
    return ran.stdout


def _exports(folder: Path) -> Iterator[Figure]:
    folder.mkdir()
    file = folder / "rows.parquet"
    pq.write_table(_rows(), file)
    kept = {"from": f"file:{file}", "name": "kept", "acceleration": {"enabled": True}}
    with _runtime(folder, kept) as url, _rival("write", file) as theirs:
        first = statistics.median(
            _seconds(lambda: _plan(url, {}, is_whole=False)) for _ in range(_RUNS)
        )
        yield Figure(
            f"a planned scan of {_ROWS:,} accelerated rows, until its first task; the goal of 1 s",
            f"{first:.2f} s", f"{_TASK_GOAL_S:g} s", first / _TASK_GOAL_S, "≤ 1",
            first <= _TASK_GOAL_S,
        )  # fmt: skip
        pairs = [(_seconds(lambda: _plan(url, {})), theirs()) for _ in range(_RUNS)]
        ours, written = (statistics.median(each) for each in zip(*pairs, strict=True))
        yield Figure(
            f"{_ROWS:,} accelerated rows of 5 columns exported; "
            "pyarrow writing them in two threads",
            f"{ours:.2f} s", f"{written:.2f} s", written / ours, f"≥ {_EXPORT_GOAL:g} of its rate",
            written >= _EXPORT_GOAL * ours,
        )  # fmt: skip
        yield _beside(f"an export of {_ROWS:,} rows", url, lambda: _plan(url, {}), theirs)


def _beside(
    title: str, url: str, work: Callable[[], object], theirs: Callable[[], object]
) -> Figure:
    """Compare small statements during our work and during that of another process."""
    connection = asking.Connection(url)
    alone = statistics.median(connection.time(_SMALL) for _ in range(200))
    ours, other = (statistics.median(_while(connection, each)) for each in (work, theirs))
    return Figure(
        f"a small statement beside {title}, median; beside pyarrow at the same work, "
        f"{alone * 1000:.1f} ms alone",
        f"{ours * 1000:.1f} ms", f"{other * 1000:.1f} ms", ours / other, f"≤ {_BESIDE_GOAL:g}",
        ours <= _BESIDE_GOAL * other,
    )  # fmt: skip


def _while(connection: asking.Connection, work: Callable[[], object]) -> list[float]:
    """Return the seconds of small statements, one after the other, while work is done."""
    thread = threading.Thread(target=work)
    thread.start()
    found = []
    while thread.is_alive():
        found.append(connection.time(_SMALL))
    return found


@contextlib.contextmanager
def _runtime(folder: Path, *datasets: Mapping[str, Any]) -> Iterator[str]:
    folder.mkdir(exist_ok=True)
    small = folder / "small.parquet"
    pq.write_table(pa.table({"v": range(1_000)}), small)
    content = {
        "version": "v1", "kind": "Caraway", "name": "catalog",
        "runtime": {"iceberg": {"location": str(folder / "published")}},
        "datasets": [{"from": f"file:{small}", "name": "small"}, *datasets],
    }  # fmt: skip
    manifest = folder / "caraway.yaml"
    manifest.write_text(yaml.safe_dump(content))
    with servers.caraway(manifest) as (url, _):
        _wait_until_loaded(url)
        yield url


def _wait_until_loaded(url: str) -> None:
    deadline = time.monotonic() + _LOADED_S
    while _asked(url, "GET", "/v1/ready")[0] != http.client.OK:
        if time.monotonic() > deadline:
            raise RuntimeError(f"not ready after {_LOADED_S:.0f} s")
        time.sleep(0.2)


@contextlib.contextmanager
def _rival(work: str, place: Path) -> Iterator[Callable[[], float]]:
    """Yield what has pyarrow do the same work in a process of its own, and returns the seconds."""
    command = [sys.executable, "-m", "bench.rivals.parquet_work", work, str(place)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdin is not None and process.stdout is not None
        asked, told = process.stdin, process.stdout

        def run() -> float:
            asked.write("\n")
            asked.flush()
            return float(told.readline())

        try:
            told.readline()
            yield run
        finally:
            process.terminate()


def _load(url: str, name: str) -> None:
    _checked(url, "GET", f"/v1/caraway/namespaces/public/tables/{name}")


def _plan(url: str, body: Mapping[str, Any], *, is_whole: bool = True) -> None:
    """Plan a scan until its first files are there, or all of them."""
    path = "/v1/caraway/namespaces/public/tables/kept"
    answer = json.loads(_checked(url, "POST", f"{path}/plan", body))
    waiting = list(answer.get("plan-tasks", ()))
    while waiting and (is_whole or not answer.get("file-scan-tasks")):
        answer = json.loads(_checked(url, "POST", f"{path}/tasks", {"plan-task": waiting.pop()}))
        waiting += answer.get("plan-tasks", ())
    if not is_whole and "plan-id" in answer:
        _asked(url, "DELETE", f"{path}/plan/{answer['plan-id']}")


def _checked(url: str, method: str, path: str, body: Mapping[str, Any] | None = None) -> bytes:
    status, answer = _asked(url, method, path, body)
    if status != http.client.OK:
        raise RuntimeError(f"{path}: {answer[:500]!r}")
    return answer


def _asked(
    url: str, method: str, path: str, body: Mapping[str, Any] | None = None
) -> tuple[int, bytes]:
    connection = http.client.HTTPConnection(url.removeprefix("http://"), timeout=_LOADED_S)
    with contextlib.closing(connection):
        content = None if body is None else json.dumps(body)
        connection.request(method, path, content, {"content-type": "application/json"})
        answer = connection.getresponse()
        return answer.status, answer.read()


def _seconds(work: Callable[[], object]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def _write_many(folder: Path) -> None:
    folder.mkdir(parents=True)
    contents = []
    for kind in range(_KINDS):
        table = pa.table({f"c{each}": range(kind, kind + 10) for each in range(_COLUMNS)})
        sink = pa.BufferOutputStream()
        pq.write_table(table, sink)
        contents.append(sink.getvalue().to_pybytes())
    for number in range(_FILES):
        (folder / f"{number:05}.parquet").write_bytes(contents[number % _KINDS])


def _rows() -> pa.Table:
    ids = pa.array(range(_ROWS), pa.int64())
    groups = pc.cast(pc.bit_wise_and(ids, 1023), pa.int32())
    return pa.table({
        "id": ids,
        "g": groups,
        "price": pc.divide(pc.cast(pc.multiply(ids, 7919), pa.float64()), 100.0),
        "text": pc.binary_join_element_wise("item", pc.cast(groups, pa.string()), " "),
        "day": groups.cast(pa.date32()),
    })  # fmt: skip
