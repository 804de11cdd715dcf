"""A manifest with invalid SQL or references is rejected before a rollout starts."""

import subprocess
import sys
from typing import Any

import pytest

from caraway_kube.resources import manifest_checks
from tests.operator.harness import harness
from tests.operator.manifests.clusters import spec

ORDERS: dict[str, Any] = {"from": "s3://b/a/", "name": "orders"}
TABLES = ("orders", "t")


def problems(manifest: dict[str, Any], **sections: Any) -> list[str]:
    content = {"version": "v1", "kind": "Caraway", "name": "a", **manifest}
    checked = manifest_checks.check_inline(spec(content, **sections))
    return [str(each) for each in checked.problems]


@pytest.mark.parametrize(
    ("sql", "why"),
    [
        ("SELEKT 1", "is not SQL: sql parser error: Expected: an SQL statement, found: SELEKT"),
        ("SELECT 1; SELECT 2", "must be one statement, but contains 2"),
        ("DELETE FROM orders", "must be a query"),
    ],
)
def test_a_view_that_is_not_a_query_is_rejected(sql: str, why: str) -> None:
    [found] = problems({"views": [{"name": "v", "sql": sql}]})

    assert found.startswith(f"spec.manifest.views[0].sql: {why}")


def test_a_refresh_that_is_not_a_query_is_rejected() -> None:
    accelerated = {**ORDERS, "acceleration": {"enabled": True, "refresh_sql": "SELEKT 1"}}

    [found] = problems({"datasets": [accelerated]})

    assert found.startswith("spec.manifest.datasets[0].acceleration.refresh_sql: is not SQL")


def test_a_body_of_a_function_that_is_not_sql_is_rejected() -> None:
    signature = {"args": [{"name": "x", "type": "int"}], "returns": "int"}
    right = {"name": "f", "signature": signature, "body": "CASE WHEN x > 1 THEN x END"}
    of_table = {"name": "t", "kind": "table", "body": "SELECT $n", "signature": {
        "args": [{"name": "n", "type": "int"}]}}  # fmt: skip
    assert not problems({"functions": [right, of_table]})

    [found] = problems({"functions": [right, {**right, "name": "g", "body": "x + "}]})

    assert found.startswith("spec.manifest.functions[1].body: is not SQL")


def test_an_undeclared_store_is_reported() -> None:
    dataset = {**ORDERS, "params": {"s3_key": "${lake:KEY}", "s3_secret": "${secrets:S}"}}

    assert problems({"datasets": [dataset]}) == [
        "spec.manifest.datasets[0].params.s3_key: unknown secret store 'lake'; known: env, secrets"
    ]
    assert not problems({"datasets": [dataset]}, secrets=[{"name": "lake", "secretName": "keys"}])


def test_an_unknown_parameter_of_a_connector_is_reported() -> None:
    dataset = {**ORDERS, "params": {"s3_regoin": "eu", "csv_delimiter": ";"}}

    [found] = problems({"datasets": [dataset]})

    assert found.startswith(
        "spec.manifest.datasets[0].params.s3_regoin: no s3 param 's3_regoin'; "
        "did you mean 's3_region'?"
    )


@pytest.mark.parametrize(
    ("store", "why"),
    [
        ({"url": "ftp://a/b"}, "no kind of location 'ftp'"),
        ({"url": "s3:/bucket"}, "names no bucket"),
        ({"url": "s3://b", "params": {"regoin": "eu"}}, "no s3 param 'regoin'; did you mean"),
        ({"url": "s3://b", "params": {"s3_auth": "key"}}, "s3_auth is 'key': set params.s3_key"),
        ({"url": "s3://b", "params": {"auth": "rolle"}}, "params.s3_auth is 'rolle'"),
        ({"url": "abfss://box/x"}, "the storage account is missing"),
        ({"url": "file://nfs/results"}, "'nfs' stands where a host would"),
        ({"url": "/results", "params": {"mode": "x"}}, "a folder has no params; remove 'mode'"),
    ],
)
def test_an_invalid_result_store_is_rejected(store: dict[str, Any], why: str) -> None:
    [of_resource] = problems({}, resultStore=store)
    scheduler = {"state_location": store["url"], "params": store.get("params", {})}
    [of_manifest] = problems({"runtime": {"scheduler": scheduler}})

    assert of_resource.startswith("spec.resultStore: ") and why in of_resource
    assert of_manifest.startswith("spec.manifest.runtime.scheduler.state_location: ")
    assert why in of_manifest


def test_the_secrets_of_a_result_store_are_not_checked() -> None:
    secret_params = [
        {"param": param, "name": "bucket", "key": param} for param in ("key", "secret", "auth")
    ]

    assert not problems({}, resultStore={"url": "s3://b/a", "secretParams": secret_params})
    assert not problems({}, resultStore={"url": "caraway://store:8070/a"})


def test_the_image_of_the_operator_can_check_a_result_store() -> None:
    script = (
        "import sys\n"
        "for name in ('pyarrow', 'datafusion', 'obstore', 'ray'): sys.modules[name] = None\n"
        "from caraway_core.manifest.rules import param_rules\n"
        "print(param_rules.place_fault('s3://b', {'s3_auth': 'key'}))\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, check=True)

    assert b"s3_auth is 'key'" in done.stdout


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT * FROM orders",
        "WITH a AS (SELECT 1 AS x) SELECT * FROM a QUALIFY row_number() OVER (ORDER BY x) = 1",
        "SELECT a.b['c'], x::int, interval '1 day' FROM t AS a, unnest(y) WHERE NOT x IN (1)",
        "SELECT * EXCLUDE (a) FROM t UNION ALL BY NAME SELECT 1",
    ],
)
def test_a_view_that_the_engine_may_parse_is_accepted(sql: str) -> None:
    tables = [{"from": "s3://b/a/", "name": name} for name in TABLES]
    assert not problems({"datasets": tables, "views": [{"name": "v", "sql": sql}]})


async def test_a_view_that_does_not_parse_starts_no_rollout() -> None:
    async with harness() as at:
        at.create()
        await at.settle()
        before = len(at.api.log)
        broken = {"version": "v1", "kind": "Caraway", "name": "shop"}
        at.change(manifest={**broken, "views": [{"name": "v", "sql": "SELEKT 1"}]})

        await at.reconcile()

        assert at.condition("SpecValid")["status"] == "False"
        assert "views[0].sql: is not SQL" in at.condition("SpecValid")["message"]
        assert at.condition("RolledOut")["status"] == "True"
        assert all("status" in line or "Event" in line for line in at.api.log[before:])
