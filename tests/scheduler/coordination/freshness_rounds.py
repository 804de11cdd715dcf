"""Rounds of schedulers that follow the newest versions of datasets."""

from tests.kit.deadlines import eventually
from tests.kit.scheduler_pairs import Scheduler

CHANGING = """\
runtime:
  caching: {sql_results: {enabled: true, item_ttl: 1h}}
datasets:
  - from: cdc:orders
    name: orders
    columns: [{name: id, type: bigint}, {name: v, type: bigint}]
    acceleration: {enabled: true, primary_key: id, indexes: {id: enabled}}
  - from: memory:notes
    name: notes
    access: read_write
    columns: [{name: text, type: string}]
views:
  - {name: total, sql: "SELECT sum(v) AS s FROM orders"}
"""


async def takes(*schedulers: Scheduler) -> None:
    """Wait until the dataset accepts changes on all of them."""

    async def look() -> bool:
        path = "/v1/datasets/orders/acceleration"
        return all(["version" in (await at.running.api.get(path)).json() for at in schedulers])

    await eventually(look, "the dataset takes changes")
