"""Contexts of a session: their names, pools and settings."""

import os
import sys
import threading
from pathlib import Path

import pytest

from caraway_core.ids import TableName
from caraway_core.process import cores
from caraway_engine.execution import contexts, processes
from caraway_engine.execution.contexts import Contexts, PlanRun, Pools
from caraway_engine.execution.settings import EngineSettings


@pytest.mark.parametrize(
    ("name", "place", "quoted"),
    [
        ("t", ("public", "t"), '"public"."t"'),
        ("sales.t", ("sales", "t"), '"sales"."t"'),
        ("Sales.T x", ("Sales", "T x"), '"Sales"."T x"'),
        ("a.b.c", ("a.b", "c"), '"a"."b"."c"'),
    ],
)
def test_a_table_has_a_schema_and_a_name(name: str, place: tuple[str, str], quoted: str) -> None:
    assert contexts.place(TableName(name)) == place
    assert contexts.quoted(TableName(name)) == quoted


def setting(context: object, name: str) -> str:
    rows = context.sql(f"SHOW {name}").to_pylist()  # type: ignore[attr-defined] # DataFusion
    return str(rows[0]["value"])


@pytest.mark.parametrize("measured", [False, True])
def test_contexts_of_a_session_differ_in_what_they_are_for(measured: bool) -> None:
    made = Contexts(EngineSettings(3), measured=measured)
    partitions = [setting(each, "datafusion.execution.target_partitions") for each in made]
    assert partitions == ["3", "1", "3", "1"]
    statistics = [setting(each, "datafusion.execution.collect_statistics") for each in made]
    assert statistics == [str(measured).lower()] * 2 + ["false"] * 2
    planned, narrow = made.planned(PlanRun()), made.planned(PlanRun(), is_narrow=True)
    for each, count in ((planned, "3"), (narrow, "1")):
        assert setting(each, "datafusion.execution.target_partitions") == count
        assert setting(each, "datafusion.execution.collect_statistics") == str(measured).lower()
        assert setting(each, "datafusion.optimizer.max_passes") == "0"
    filters = "datafusion.optimizer.enable_join_dynamic_filter_pushdown"
    # A plan whose partitions run one after another would wait for itself.
    assert [setting(each, filters) for each in (made.main, made.serial)] == ["true", "false"]
    for each in (*made, planned, narrow):
        assert setting(each, "datafusion.catalog.default_catalog") == contexts.CATALOG
        # Known to answer wrongly; see the comments in the module.
        for off in (
            "enable_aggregate_dynamic_filter_pushdown",
            "enable_topk_aggregation",
            "repartition_sorts",
        ):
            assert setting(each, f"datafusion.optimizer.{off}") == "false"


def test_plans_that_may_sort_apart_do_so_in_several_partitions() -> None:
    made = Contexts(EngineSettings(3), measured=True)
    apart = PlanRun(sorts_apart=True)
    for is_narrow, value in ((False, "true"), (True, "false")):
        context = made.planned(apart, is_narrow=is_narrow)
        assert setting(context, "datafusion.optimizer.repartition_sorts") == value


def test_memory_is_divided_between_products_and_all_else(tmp_path: Path) -> None:
    pools = Pools(EngineSettings(2, memory_limit_bytes=4_000_000, temp_directory=tmp_path))
    assert (pools.main.size_bytes, pools.serial.size_bytes) == (3_000_000, 1_000_000)
    none = Pools(EngineSettings(2))
    assert (none.main.size_bytes, none.serial.size_bytes) == (0, 0)


@pytest.mark.parametrize(("limit", "reserved"), [(16_000_000, 750_000), (10**9, 10 * 2**20)])
def test_a_sort_reserves_a_part_of_a_small_memory(limit: int, reserved: int) -> None:
    settings = EngineSettings(2, memory_limit_bytes=limit)
    main = contexts.new(settings, 2, Pools(settings).main, measured=False)
    found = setting(main, "datafusion.execution.sort_spill_reservation_bytes")
    assert int(found) == reserved


def test_new_files_of_a_folder_are_seen(tmp_path: Path) -> None:
    context = contexts.without_statistics(1)
    (tmp_path / "a.csv").write_text("a\n1\n")
    context.register_csv("t", f"{tmp_path}/")
    assert len(context.sql("SELECT a FROM t").to_pylist()) == 1
    (tmp_path / "b.csv").write_text("a\n2\n")
    assert len(context.sql("SELECT a FROM t").to_pylist()) == 2
    below = tmp_path / "below"
    below.mkdir()
    (below / "c.csv").write_text("a\n3\n")
    assert len(context.sql("SELECT a FROM t").to_pylist()) == 3


def test_the_thread_pool_is_sized_unless_somebody_did(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes: list[int] = []
    monkeypatch.setattr(threading, "stack_size", sizes.append)
    monkeypatch.setattr(cores, "available", lambda: 1)
    monkeypatch.setenv("TOKIO_WORKER_THREADS", "put back after the test")
    monkeypatch.delenv("TOKIO_WORKER_THREADS")
    monkeypatch.setenv("RUST_MIN_STACK", "7")
    processes.prepare()
    assert os.environ["TOKIO_WORKER_THREADS"] == "2", "one would wait for itself"
    assert os.environ["RUST_MIN_STACK"] == "7"
    monkeypatch.setattr(cores, "available", lambda: 6)
    processes.prepare()
    assert os.environ["TOKIO_WORKER_THREADS"] == "2"
    monkeypatch.delenv("TOKIO_WORKER_THREADS")
    processes.prepare()
    assert os.environ["TOKIO_WORKER_THREADS"] == "6"
    assert sizes == [64 * 2**20] * 3
    assert sys.getswitchinterval() == pytest.approx(0.001)


@pytest.mark.parametrize(
    ("limit_bytes", "main", "serial"),
    [(0, 2**20, 2**20), (2**32, 2**20, 2**20), (2**28, 3 * 2**18, 2**18), (2**16, 1024, 1024)],
)
def test_arrays_of_keys_take_a_small_share_of_memory(
    limit_bytes: int, main: int, serial: int
) -> None:
    made = Contexts(EngineSettings(2, memory_limit_bytes=limit_bytes), measured=False)
    name = "datafusion.execution.perfect_hash_join_small_build_threshold"
    assert [setting(each, name) for each in (made.main, made.serial)] == [str(main), str(serial)]


def test_keys_in_a_small_range_are_found_in_an_array() -> None:
    context = Contexts(EngineSettings(2), measured=False).main
    keys = "SELECT value * 5000 AS k FROM range(200)"
    sql = f"EXPLAIN ANALYZE SELECT count(*) FROM ({keys}) a JOIN range(1000000) b ON a.k = b.value"
    plan = str(context.sql(sql).to_pylist()[0]["plan"])
    assert "HashJoinExec" in plan and "array_map_created_count=0" not in plan
