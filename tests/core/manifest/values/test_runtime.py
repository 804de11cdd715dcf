from pathlib import Path

import pytest

from caraway_core.manifest import RuntimeSettings, split_key
from caraway_core.manifest import notices as of_keys
from caraway_core.manifest.values import caching
from caraway_core.manifest.values import runtime as values
from tests.core.manifest.conftest import Loads, Refuses


def test_every_setting_reaches_its_value(loads: Loads, tmp_path: Path) -> None:
    runtime = loads(
        """
runtime:
  auth: {api_key: {keys: ["${secrets:r}:ro", 12, ""]}}
  tls: {certificate_file: tls/a.pem, key: "${secrets:pem}"}
  cors: {enabled: true, allowed_origins: "https://a"}
  task_history:
    enabled: false
    captured_output: truncated
    captured_plan: explain analyze
    min_sql_duration: 10ms
    min_plan_duration: 1s
    retention_period: 1d
    retention_check_interval: 1m
  caching:
    sql_results:
      enabled: false
      max_size: 1GB
      item_ttl: 2m
      eviction_policy: tiny_lfu
      hashing_algorithm: ahash
      cache_key_type: sql
      encoding: zstd
      stale_while_revalidate_ttl: 5
  query:
    memory_limit: 2GiB
    max_concurrent_queries: 0
    max_queued_queries: 7
    queue_timeout: 1s
    timeout: 1h30m
    planning_timeout: 2.5s
    max_sql_size: 2MiB
    target_partitions: 3
    spill_compression: lz4_frame
    temp_directory: spill
    consistency: eventual
    distribution:
      {small_table_size: 1MiB, broadcast_size: 0, gather_size: 1KiB, partition_size: 2MiB}
  cpu: {cores: 2}
  dataset_load_parallelism: 4
  shutdown_timeout: 5
  ready_state: on_registration
  output_level: VERBOSE
  params: {a: 1}
  flight:
    max_message_size: 32MiB
    do_put_rate_limit_enabled: false
    parallel_reads: {ticket_ttl: 5m}
  http: {max_body_size: 1MiB}
  mcp: {allowed_hosts: [a]}
  telemetry:
    enabled: false
    metric_prefix: cw_
    properties: {a: b}
    otel_exporter: {endpoint: "http://o", push_interval: 5s, headers: {k: "${env:K}"}, metrics: [m]}
  scheduler: {state_location: "s3://b/p/", params: {s3_key: "${secrets:k}", allow_http: true}}
  jobs: {max_concurrent: 3, max_queued: 0, retention: 1h}
"""
    ).runtime
    assert runtime == RuntimeSettings(
        auth=values.AuthSettings(True, ("${secrets:r}:ro", "12")),
        tls=values.TlsSettings(certificate_file=tmp_path / "tls/a.pem", key="${secrets:pem}"),
        cors=values.CorsSettings(True, ("https://a",)),
        task_history=values.TaskHistorySettings(
            False, "truncated", "explain analyze", 0.01, 1.0, 86400.0, 60.0
        ),
        caching=caching.CachingSettings(
            caching.SqlResultsCacheSettings(
                False, 10**9, 120.0, "tiny_lfu", "ahash", "sql", "zstd", 5.0
            )
        ),
        query=values.QuerySettings(
            2 << 30,
            0,
            7,
            1.0,
            5400.0,
            2.5,
            2 << 20,
            3,
            "lz4_frame",
            tmp_path / "spill",
            "eventual",
            values.DistributionSettings(1 << 20, 0, 1 << 10, 2 << 20),
        ),
        cpu=values.CpuSettings(2),
        dataset_load_parallelism=4,
        shutdown_timeout_s=5.0,
        ready_state="on_registration",
        output_level="verbose",
        params={"a": "1"},
        flight=values.FlightSettings(32 << 20, False, values.ParallelReadSettings(True, 300.0)),
        http=values.HttpSettings(1 << 20),
        mcp=values.McpSettings(("a",)),
        telemetry=values.TelemetrySettings(
            False,
            "cw_",
            {"a": "b"},
            values.OtelExporter(True, "http://o", 5.0, {"k": "${env:K}"}, ("m",)),
        ),
        scheduler=values.SchedulerSettings(
            "s3://b/p", {"s3_key": "${secrets:k}", "allow_http": "true"}
        ),
        jobs=values.JobSettings(3, 0, 3600.0),
    )
    assert "${secrets" not in repr(runtime.auth) + repr(runtime.tls) + repr(runtime.scheduler)


def test_an_empty_query_section_is_the_default(loads: Loads) -> None:
    assert loads("runtime: {query: {}}").runtime.query == values.QuerySettings()


def test_old_results_cache_is_read_with_a_notice(loads: Loads) -> None:
    manifest = loads("runtime: {results_cache: {cache_max_size: 1k, item_ttl: 3s}}")
    cache = manifest.runtime.caching.sql_results
    assert (cache.max_size_bytes, cache.item_ttl_s) == (1000, 3.0)
    assert "is the old name of 'runtime.caching.sql_results'" in manifest.notices[0]


def test_timeout_of_nothing_is_no_timeout(loads: Loads) -> None:
    assert loads("").runtime.query.timeout_s == 600
    assert loads("runtime: {query: {max_queued_queries: 7}}").runtime.query.timeout_s == 600
    assert loads("runtime: {query: {timeout: 0}}").runtime.query.timeout_s is None


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("results", "{base}/results"),
        ("../results/", "{above}/results"),
        ("file:results", "{base}/results"),
        ("/var/results", "/var/results"),
        ("file:///var/a b", "/var/a b"),
        ("file:/var/x", "/var/x"),
        ("s3://b", "s3://b"),
        ("S3://b/a/b", "s3://b/a/b"),
        ("gs://b/a/", "gs://b/a"),
        ("caraway://state.ns.svc:8095", "caraway://state.ns.svc:8095"),
        ("caraway://[::1]:8095/a/", "caraway://[::1]:8095/a"),
        ("abfss://c@account.dfs.core.windows.net/a", "abfss://c@account.dfs.core.windows.net/a"),
    ],
)
def test_state_location_is_absolute(
    loads: Loads, tmp_path: Path, written: str, expected: str
) -> None:
    scheduler = loads(f'runtime: {{scheduler: {{state_location: "{written}"}}}}').runtime.scheduler
    expected = expected.format(base=tmp_path, above=tmp_path.parent)
    assert scheduler == values.SchedulerSettings(expected)


@pytest.mark.parametrize(
    ("written", "message"),
    [
        ("s4://b", "no kind of location 's4'; known: abfss, caraway, file, gs, s3"),
        ("s3://", "names no bucket; write s3://bucket/prefix"),
        ("caraway://", "names no store; write caraway://HOST:PORT/PREFIX"),
        ("caraway://state/p", "'state' is no HOST:PORT; write caraway://HOST:PORT/PREFIX"),
        ("caraway://:1/p", "':1' is no HOST:PORT; write caraway://HOST:PORT/PREFIX"),
        ("caraway://t@h:1/p", "holds an '@' in the bucket; credentials belong into 'params'"),
        ("s3:b/a", "names no bucket; write s3://bucket/prefix"),
        ("gs:///a", "names no bucket; write gs://bucket/prefix"),
        ("s3://key:secret@b/a", "holds an '@' in the bucket; credentials belong into 'params'"),
        ("s3://b/a//c", "'a//c' is no plain prefix; write names with '/' between them"),
        ("s3://b/../c", "'../c' is no plain prefix; write names with '/' between them"),
        ("file://", "names no folder; write for example file:///var/lib/caraway/results"),
        ("file://host/a", "'host' stands where a host would; write file:/// before an absolute "
         "path"),
    ],
)  # fmt: skip
def test_state_location_that_is_none_is_refused(
    refuses: Refuses, written: str, message: str
) -> None:
    (problem,) = refuses(f'name: a\nruntime:\n  scheduler:\n    state_location: "{written}"')
    assert problem == f"caraway.yaml:4: runtime.scheduler.state_location: {message}"


def test_settings_of_jobs_are_checked(refuses: Refuses) -> None:
    assert refuses(
        """name: a
runtime:
  scheduler:
    params: {s3_region: x}
    state_locaton: a
    max_partitions_per_executor: 0
  jobs:
    max_concurrent: 0
    max_queue: 3
    retention: 0s
    max_queued: -1
"""
    ) == [
        "caraway.yaml:4: runtime.scheduler.params: 'params' needs a 'state_location' that it is "
        "for",
        "caraway.yaml:5: runtime.scheduler.state_locaton: unknown key 'state_locaton'; did you "
        "mean 'state_location'?",
        "caraway.yaml:6: runtime.scheduler.max_partitions_per_executor: must be at least 1",
        "caraway.yaml:8: runtime.jobs.max_concurrent: must be at least 1",
        "caraway.yaml:9: runtime.jobs.max_queue: unknown key 'max_queue'; did you mean "
        "'max_queued'?",
        "caraway.yaml:10: runtime.jobs.retention: must be more than 0",
        "caraway.yaml:11: runtime.jobs.max_queued: must be at least 0",
    ]


def test_keys_of_partitions_say_why_they_change_nothing(loads: Loads) -> None:
    keys = (
        "partition_assignment_interval: 1m, max_partition_assignments_per_interval: 1, "
        "max_partitions_per_executor: 2, partition_discovery_timeout: 3s"
    )
    notices = loads(f"runtime: {{scheduler: {{state_location: a, {keys}}}}}").notices
    reasons = [notice.partition(": has no effect: ")[2] for notice in notices]
    assert len(reasons) == 4 and all(reasons)


def test_no_notice_promises_an_effect() -> None:
    assert "no effect yet" not in Path(of_keys.__file__).read_text()


@pytest.mark.parametrize(
    "auth", ["", "{}", "{api-key: }", "{api-key: {keys: []}}", "{api_key: {keys: ['']}}"]
)
def test_authentication_without_keys_is_refused(refuses: Refuses, auth: str) -> None:
    (problem,) = refuses(f"name: a\nruntime:\n  auth: {auth}")
    assert problem.startswith("caraway.yaml:3: runtime.auth.")
    assert problem.endswith("has no keys; add 'keys', or set 'enabled' to false")


def test_authentication_that_is_off_needs_no_keys(loads: Loads) -> None:
    assert loads("runtime: {auth: {api-key: {enabled: false, keys: [a]}}}").runtime.auth.keys == ()


def test_settings_that_exclude_each_other(refuses: Refuses) -> None:
    assert refuses(
        """name: a
runtime:
  auth: {api-key: {keys: [a]}, api_key: {keys: [a]}}
  tls: {certificate: a, certificate_file: b, client_auth_mode: request}
  caching: {sql_results: {enabled: true}}
  results_cache: {enabled: true}
secrets: [{from: env, name: e}, {from: env, name: e}, {from: "env:A", name: secrets}]
"""
    ) == [
        "caraway.yaml:3: runtime.auth.api_key: 'api-key' and 'api_key' exclude each other; "
        "keep one",
        "caraway.yaml:4: runtime.tls.certificate: 'certificate_file' and 'certificate' exclude "
        "each other; keep one",
        "caraway.yaml:4: runtime.tls: one of 'key_file' and 'key' is needed",
        "caraway.yaml:4: runtime.tls.client_auth_mode: it needs a 'client_auth_ca_file' with the "
        "authorities of the clients",
        "caraway.yaml:6: runtime.results_cache: 'results_cache' is the old name of "
        "'caching.sql_results'; keep only the latter",
        "caraway.yaml:7: secrets[2].from: the store 'env' takes no path; write 'env', "
        "or 'dotenv:<path>'",
        "caraway.yaml:7: secrets[2].name: 'secrets' means all stores in a reference; "
        "choose another name",
        "caraway.yaml:7: secrets[1].name: secret store 'e' is declared twice, first on line 7",
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("k", ("k", "ro")),
        ("k:ro", ("k", "ro")),
        ("k:rw", ("k", "rw")),
        ("a:b:rw", ("a:b", "rw")),
        ("k:rw:ro", ("k:rw", "ro")),
        ("k:RW", ("k:RW", "ro")),
    ],
)
def test_split_key(text: str, expected: tuple[str, str]) -> None:
    assert split_key(text) == expected
