import datetime as dt
import subprocess
import sys
import types
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

import caraway
from caraway import CarawayError, NotInstalledHereError
from caraway.rows.results import SqlResult

TABLE = pa.table({"id": [1, 2], "name": ["<b>Ada</b>", None]})
TWICE = pa.Table.from_arrays([pa.array([1]), pa.array([2])], names=["a", "a"])


def test_a_result_is_used_like_its_table() -> None:
    result = SqlResult(TABLE)

    assert result.num_rows == len(result) == 2
    assert result.column("id").to_pylist() == result["id"].to_pylist() == [1, 2]
    assert result == TABLE
    assert pa.table(result) == TABLE
    assert result.to_pylist() == TABLE.to_pylist()
    assert SqlResult(TABLE.slice(0, 0))
    with pytest.raises(AttributeError, match="nonsense"):
        result.nonsense  # noqa: B018


def test_duckdb_reads_the_rows() -> None:
    found = SqlResult(TABLE).to_duckdb().filter("id > 1").fetchall()

    assert found == [(2, None)]


@pytest.mark.parametrize("package", ["pandas", "polars", "duckdb"])
def test_a_package_that_is_missing_is_named(monkeypatch: pytest.MonkeyPatch, package: str) -> None:
    monkeypatch.setitem(sys.modules, package, None)

    with pytest.raises(NotInstalledHereError, match=f"pip install {package}"):
        getattr(SqlResult(TABLE), f"to_{package}")()


def test_polars_gets_the_table(monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[Any] = []
    monkeypatch.setitem(sys.modules, "polars", types.SimpleNamespace(from_arrow=given.append))

    SqlResult(TABLE).to_polars()

    assert given == [TABLE]


@pytest.mark.parametrize("view", ["to_pylist", "to_polars", "to_duckdb"])
def test_columns_that_share_a_name_are_refused_where_one_would_hide_the_other(view: str) -> None:
    with pytest.raises(CarawayError, match="columns share the name 'a'"):
        getattr(SqlResult(TWICE), view)()


def test_html_is_escaped_and_bounded() -> None:
    shown = SqlResult(TABLE.rename_columns(["<id>", "name"]))._repr_html_()

    assert "<b>" not in shown and "&lt;b&gt;Ada&lt;/b&gt;" in shown
    assert "&lt;id&gt;" in shown
    assert "<td>NULL</td>" in shown
    assert "2 rows, 2 columns" in shown
    many = SqlResult(pa.table({"n": ["x" * 1000] * 50}))._repr_html_()
    assert many.count("<tr>") == 21
    assert "first 20 of 50 rows" in many
    assert "x" * 201 not in many


def test_html_shows_values_that_python_cannot_hold() -> None:
    table = pa.table(
        {
            "ns": pa.array([1], pa.timestamp("ns", "UTC")),
            "far": pa.array([2**62], pa.timestamp("s")),
            "huge": pa.array([Decimal(10) ** 40], pa.decimal256(60, 0)),
            "nested": [[{"a": [1, 2]}]],
            "zone": pa.array([dt.datetime(2024, 1, 1)], pa.timestamp("us", "Europe/Berlin")),
        }
    )

    assert SqlResult(table)._repr_html_().count("<td>") == 5
    assert SqlResult(table.slice(0, 0))._repr_html_().count("<td>") == 0


def test_importing_the_library_loads_no_other_package() -> None:
    script = (
        "import sys; before = set(sys.modules); import caraway; dir(caraway)\n"
        "print(*sorted(set(sys.modules) - before))"
    )

    ran = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=30, check=True
    )

    loaded = set(ran.stdout.split())
    assert {name for name in loaded if name.partition(".")[0] not in sys.stdlib_module_names} <= {
        "caraway"
    }


def test_making_a_client_loads_no_arrow() -> None:
    script = (
        "import sys, caraway\n"
        "with caraway.Client() as client: pass\n"
        "print(*sorted({'pyarrow', 'pydantic', 'typer', 'prompt_toolkit', 'pandas',\n"
        "    'datafusion'} & set(sys.modules)))"
    )

    ran = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=30, check=True
    )

    assert ran.stdout.split() == []


def test_every_public_name_exists() -> None:
    assert all(getattr(caraway, name) for name in caraway.__all__)
    with pytest.raises(AttributeError, match="nonsense"):
        caraway.nonsense  # noqa: B018
