"""A cluster of three executors, and a join that it runs in stages."""

import functools
import inspect
from collections.abc import Awaitable, Callable
from pathlib import Path

from caraway_core.ids import ExecutorId
from caraway_core.tables import TableSpec
from tests.kit.clusters import in_process_cluster

ROWS = 3000
JOIN = (
    "SELECT g, sum(a.v) AS s, count(*) AS n FROM facts a JOIN more b ON a.k = b.k "
    "GROUP BY g ORDER BY g"
)
E1, E2, E3 = map(ExecutorId, ("e1", "e2", "e3"))


def on_three(test: Callable[..., Awaitable[None]]) -> Callable[..., Awaitable[None]]:
    """Run a test inside a cluster of three executors; its fixtures cannot be async."""

    async def wrapped(tmp_path: Path, tables: dict[str, TableSpec], **others: object) -> None:
        async with in_process_cluster(tmp_path, tables, executors=3) as cluster:
            if "tables" in wanted:
                others["tables"] = tables
            await test(cluster=cluster, **others)

    wanted = inspect.signature(test).parameters
    names = dict.fromkeys(["tmp_path", "tables", *wanted])
    kinds = [inspect.Parameter(each, inspect.Parameter.KEYWORD_ONLY) for each in names
             if each != "cluster"]  # fmt: skip
    functools.update_wrapper(wrapped, test)
    wrapped.__signature__ = inspect.Signature(kinds)  # type: ignore[attr-defined]
    return wrapped


def expected() -> list[dict[str, int]]:
    sums: dict[int, dict[str, int]] = {}
    for n in range(ROWS):
        group = sums.setdefault((n % 700) % 11, {"g": (n % 700) % 11, "s": 0, "n": 0})
        group["s"] += n
        group["n"] += 1
    return [sums[g] for g in sorted(sums)]
