"""Functions of a manifest in a process of its own: statements, accelerated rows, a reload."""

import signal
from pathlib import Path

from tests.kit.deadlines import until
from tests.kit.processes import Child, child

MANIFEST = """
version: v1
kind: Caraway
name: functions
functions:
  - name: net_price
    signature: {args: [{name: gross, type: double}], returns: double}
    body: gross / 1.25
  - name: orders_above
    kind: table
    signature: {args: [{name: least, type: double}]}
    body: SELECT id, net_price(amount) AS net FROM orders WHERE amount > $least
datasets:
  - {from: 'file:orders.csv', name: orders}
  - from: file:orders.csv
    name: net_orders
    acceleration: {refresh_sql: "SELECT id, net_price(amount) AS net FROM net_orders"}
views:
  - {name: best, sql: SELECT max(net) AS net FROM orders_above(0)}
"""


def answers(caraway: Child, divisor: float) -> bool:
    nets = [10 / divisor, 20 / divisor]
    found = {
        "SELECT id, net FROM orders_above(15)": [{"id": 2, "net": nets[1]}],
        "SELECT net FROM net_orders ORDER BY net": [{"net": each} for each in nets],
        "SELECT net FROM best": [{"net": nets[1]}],
        "SELECT net_price(amount) AS net FROM orders ORDER BY 1": [{"net": each} for each in nets],
    }
    answered = {sql: caraway.sql(sql) for sql in found}
    return (
        all(each.status_code == 200 for each in answered.values())
        and {sql: each.json() for sql, each in answered.items()} == found
    )


def test_statements_follow_the_functions_of_the_manifest(tmp_path: Path) -> None:
    (tmp_path / "orders.csv").write_text("id,amount\n1,10.0\n2,20.0\n")
    manifest = tmp_path / "caraway.yaml"
    manifest.write_text(MANIFEST)
    with child(tmp_path, manifest) as caraway:
        until(lambda: answers(caraway, 1.25), "answers with the functions")
        listed = caraway.sql("SELECT name, kind FROM runtime.functions ORDER BY name").json()
        assert listed == [
            {"name": "net_price", "kind": "scalar"},
            {"name": "orders_above", "kind": "table"},
        ]
        manifest.write_text(MANIFEST.replace("1.25", "2.0"))
        caraway.signal(signal.SIGHUP)
        until(lambda: answers(caraway, 2.0), "answers with the changed function")
        # A cycle: the present functions stay in force.
        manifest.write_text(MANIFEST.replace("gross / 1.25", "net_price(gross)"))
        caraway.signal(signal.SIGHUP)
        until(lambda: "manifest not reloaded" in caraway.logged(), "the refusal in the log")
        assert answers(caraway, 2.0)
