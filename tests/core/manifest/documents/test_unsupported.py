import pytest

from tests.core.manifest.conftest import Loads, Refuses
from tests.core.manifest.unsupported_keys import EVERYTHING


def test_everything_unsupported_is_listed_at_once(refuses: Refuses) -> None:
    off = "remove it or set its 'enabled' to false"
    lines = [line.removeprefix("caraway.yaml:") for line in refuses(EVERYTHING.read_text())]
    assert lines == [
        "6: management: 'management' is refused: a management service starts its runtimes, which "
        f"sign in nowhere; {off}",
        "8: extensions: 'extensions' is refused: plug-ins are packages, which need no key once "
        "they are installed; remove it",
        "10: secrets[0].from: no secret store 'gcp'; known: aws_secrets_manager, azure_keyvault, "
        "dotenv, env, file, keyring, kubernetes, vault",
        "13: catalogs[0].from: no connector of catalogs 'unity_catalog'; known: adbc, "
        "caraway, clickhouse, duckdb, flightsql, glue, iceberg, mysql, odbc, postgres, sqlite",
        "15: datasets[0].from: no connector 'oracle'; known: abfss, adbc, caraway, cdc, "
        "clickhouse, debezium, delta, duckdb, dynamodb, elasticsearch, file, flightsql, ftp, "
        "github, glue, graphql, gs, http, https, iceberg, kafka, localpod, memory, mongodb, "
        "mysql, odbc, opensearch, postgres, s3, sftp, snowflake, spark, sqlite",
        "19: datasets[0].vectors.engine: the engine 's3_vectors' is refused: vectors are kept "
        "with their dataset; remove it",
        "21: datasets[0].replication: 'replication' is refused: writes go to the source, and come "
        f"back with the statement or the next refresh; {off}",
        "31: datasets[0].acceleration: 'on_conflict' over an index is refused: rows are replaced "
        "by their primary key alone; remove it or set 'enabled' to false",
        "31: datasets[0].acceleration: 'write_mode' write_back is refused: a write is acknowledged "
        "when its source has it, so that none is lost with a process; remove it or set 'enabled' "
        "to false",
        "64: search_engines: 'search_engines' is refused: indexes belong to the columns of "
        "datasets; write 'full_text_search' or 'embeddings' at a column",
        "65: tools[0].as_sql: only a tool `from: sql` can be called in SQL: a statement may be "
        "planned and run several times, so it must not call a service; load what the service "
        "answers as a dataset",
        "67: functions[0].from: a function is `from: sql`; a service can be a tool `from: "
        "https://...`, and what it answers a dataset",
        "67: functions[0]: the function has neither 'body' nor 'body_ref'",
        "68: evals: 'evals' is refused: a runtime answers, and does not judge models; remove it",
        "72: runtime.auth.oidc: 'runtime.auth.oidc' is refused: a runtime takes keys; people sign "
        f"in at the management service, also over OIDC; {off}",
        "76: runtime.policy: 'runtime.policy' is refused: the end of a key (:ro, :rw, :admin) and "
        "'access' of datasets say who may do what; remove it",
        "78: runtime.source_rate_control: 'runtime.source_rate_control' is refused: processes do "
        "not share a count of requests; write 'requests_per_second_limit' at a dataset, which "
        "limits each process",
    ]


def test_switched_off_and_empty_sections_are_fine(loads: Loads) -> None:
    manifest = loads(
        """
management: {enabled: false}
snapshots: {enabled: false}
extensions: {x: {enabled: false}}
models: []
tools:
runtime:
  tls: {enabled: false, client_auth_mode: none}
  caching: {search_results: {enabled: false}, embeddings: {max_size: 1MiB}}
  functions: {enabled: false}
datasets:
  - from: file:a
    name: a
    vectors: {enabled: false}
    full_text_search: {enabled: false}
    replication: {enabled: false}
    columns: [{name: b, embeddings: [], full_text_search: {enabled: false}}]
    acceleration: {enabled: false}
"""
    )
    assert manifest.notices == ()


@pytest.mark.parametrize(
    ("origin", "message"),
    [
        ("flie:a.csv", "no connector 'flie'; did you mean 'file'?"),
        ("data/a.csv", "no connector 'data'"),
        ("/a.csv", "'/a.csv' names no connector; write '<connector>:<path>', for example"),
        ("spice.ai/eth.blocks", "no connector 'spice.ai'; known: abfss, adbc"),
    ],
)
def test_unknown_connectors_are_refused(refuses: Refuses, origin: str, message: str) -> None:
    (problem,) = refuses(f"name: a\ndatasets:\n  - from: {origin}\n    name: a")
    assert problem.startswith(f"caraway.yaml:3: datasets[0].from: {message}")


def test_acceleration_values_are_checked_also_when_off(refuses: Refuses) -> None:
    problems = refuses(
        """name: a
datasets:
  - from: file:a
    name: a
    columns: [{name: b}, {name: b}]
    acceleration:
      enabled: false
      engine: duckbd
      mod: file
      refresh_check_interval: 0
      refresh_cron: "* * * * *"
      refresh_data_window: 1d
      indexes: {a: uniq}
      partition_by: 3
      metrics: 3
"""
    )
    where = "datasets[0].acceleration"
    assert problems == [
        "caraway.yaml:5: datasets[0].columns[1].name: column 'b' is declared twice, "
        "first on line 5",
        f"caraway.yaml:8: {where}.engine: 'duckbd' is not one of: arrow, file, cayenne, duckdb, "
        "sqlite, postgres, turso; did you mean 'duckdb'?",
        f"caraway.yaml:9: {where}.mod: unknown key 'mod'; did you mean 'mode'?",
        f"caraway.yaml:10: {where}.refresh_check_interval: must be more than 0",
        f"caraway.yaml:11: {where}.refresh_cron: 'refresh_check_interval' and 'refresh_cron' "
        "exclude each other; keep one",
        f"caraway.yaml:12: {where}.refresh_data_window: 'refresh_data_window' needs the dataset's "
        "'time_column'",
        f"caraway.yaml:13: {where}.indexes.a: 'uniq' is not one of: enabled, unique; "
        "did you mean 'unique'?",
        f"caraway.yaml:14: {where}.partition_by: must be a list of expressions or of "
        "'name: expression'",
        f"caraway.yaml:15: {where}.metrics: must be a mapping of keys to values",
    ]
