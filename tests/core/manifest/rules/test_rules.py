"""Rules between keys: each reports its problem at its place, even if others are broken, too."""

import pytest

from tests.core.manifest.conftest import Loads, Refuses

TLS = "runtime: {tls: {enabled: true, %s}}"
KEYS = "certificate_file: a, key_file: b"


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("runtime: {auth: {}}", "runtime.auth.api-key: authentication is on but has no keys"),
        ("runtime: {auth: {api-key: {keys: []}}}", "authentication is on but has no keys"),
        ("runtime: {auth: {api-key: {keys: ['', null]}}}", "has no keys"),
        ("runtime: {auth: {api-key: {enabled: true}}}", "has no keys"),
        ("runtime: {auth: {api-key: null}}", "has no keys"),
        ("runtime: {auth: {api-key: {keys: [a]}, api_key: {keys: [b]}}}", "exclude each other"),
        (TLS % "key_file: b", "runtime.tls: one of 'certificate_file' and 'certificate' is needed"),
        (TLS % "certificate_file: a", "one of 'key_file' and 'key' is needed"),
        (TLS % f"{KEYS}, key: c", "runtime.tls.key: 'key_file' and 'key' exclude each other"),
        (TLS % f"{KEYS}, client_auth_mode: required", "needs a 'client_auth_ca_file'"),
        ("runtime: {scheduler: {params: {a: b}}}", "'params' needs a 'state_location'"),
        ("runtime: {iceberg: {access_delegation: [vended-credentials]}}",
         "runtime.iceberg.access_delegation: 'vended-credentials' needs an 'sts_role_arn'"),
        ("runtime: {iceberg: {sts_endpoint: 'ftp://a'}}", "write a URL such as https://sts"),
        ("runtime: {iceberg: {sts_endpoint: 'https://u:p@a'}}", "write a URL such as https://sts"),
        ("runtime: {iceberg: {access_delegation: [signing]}}", "remote-signing"),
        ("runtime: {results_cache: {enabled: true}, caching: {sql_results: {enabled: true}}}",
         "runtime.results_cache: 'results_cache' is the old name"),
        ("secrets: [{from: env, name: a}, {from: env, name: a}]",
         "secrets[1].name: secret store 'a' is declared twice, first on line 2"),
        ("views: [{name: v}]", "one of 'sql' and 'sql_ref' is needed"),
        ("views: [{name: v, sql: select 1, sql_ref: x}]", "exclude each other; keep one"),
        ("views: [{name: v, sql: select 1, columns: [{name: a}, {name: a}]}]",
         "columns[1].name: column 'a' is declared twice"),
        ("datasets: [{from: 'file:a', name: d, acceleration: {refresh_cron: '0 * * * *', "
         "refresh_check_interval: 1m}}]", "exclude each other"),
        ("workers: [{name: w, models: [{from: m}], params: {cooldown: 1e5}}]",
         "params.cooldown: '1e5' is not a duration"),
        ("datasets: [{from: 'file:a', name: d, acceleration: {snapshots: enabled, "
         "snapshots_trigger: stream_batches, snapshots_trigger_threshold: 0x10}}]",
         "'0x10' is no threshold"),
    ],
)  # fmt: skip
def test_problems(refuses: Refuses, text: str, problem: str) -> None:
    assert any(problem in each for each in refuses(f"name: app\n{text}")), refuses(text)


@pytest.mark.parametrize(
    "text",
    [
        "runtime: {auth: {api-key: {enabled: false}}}",
        "runtime: {auth: {api-key: {keys: ['a:rw']}}}",
        TLS % f"{KEYS}, client_auth_mode: required, client_auth_ca_file: c",
        "runtime: {tls: {enabled: false}}",
        "runtime: {scheduler: {state_location: '/x', params: {}}}",
        "views: [{name: v, sql: select 1, columns: [{name: a}, {name: A}]}]",
    ],
)
def test_what_is_right(loads: Loads, text: str) -> None:
    assert loads(text).name == "app"


BROKEN = "datasets: [{from: 5, name: [x], columns: 7}, null, text]"


@pytest.mark.parametrize(
    "text",
    [
        "runtime: {auth: {}}", "secrets: [{from: env, name: a}, {from: env, name: a}]",
        "views: [{name: v, columns: [{name: a}, {name: a}]}]",
    ],
)  # fmt: skip
def test_a_broken_value_elsewhere_hides_no_rule(refuses: Refuses, text: str) -> None:
    alone = set(refuses(f"{text}\nname: app"))
    assert alone <= set(refuses(f"{text}\nname: app\n{BROKEN}"))


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("datsets: []", "unknown key 'datsets'; did you mean 'datasets'?"),
        ("runtime: {tls: {enabld: true}}", "unknown key 'enabld'; did you mean 'enabled'?"),
        ("datasets: [{name: d}]", "datasets[0].from: the key 'from' is missing"),
        ("datasets: {a: b}", "datasets: must be a list"),
        ("datasets: [{from: 'file:a', name: d, acceleration: [1]}]", "must be a mapping of keys"),
        ("datasets: [{from: 'file:a', name: d, acceleration: {enabled: yes}}]", "true or false"),
        ("datasets: [{from: 'file:a', name: d, acceleration: {replicas: 1.5}}]", "whole number"),
        ("datasets: [{from: 'file:a', name: d, access: reed}]",
         "'reed' is not one of: read, read_write; did you mean 'read'?"),
        ("datasets: [{from: 'file:a', name: d, access: [read]}]", "must be one of: read,"),
        ("datasets: [{from: 'file:a', name: d, metadata: x}]", "must be a mapping of keys"),
        ("datasets: [{from: 'file:a', name: d, params: {a: [1]}}]",
         "the value of 'a' must be a text, a number, true or false"),
        ("runtime: {xyzzy: {a: 1}}", "unknown key 'xyzzy'; known: "),
    ],
)  # fmt: skip
def test_shapes_are_told_in_terms_of_the_file(refuses: Refuses, text: str, problem: str) -> None:
    problems = refuses(f"name: app\n{text}")
    assert any(problem in each for each in problems), problems
    assert not any("pydantic" in each or "Input should" in each for each in problems)
