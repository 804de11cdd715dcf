from collections.abc import Mapping
from pathlib import Path

import pytest

from caraway_core.errors import CarawayError
from caraway_core.manifest import SecretResolver, build_resolver, load
from caraway_core.manifest.secrets import references
from tests.core.manifest.conftest import Loads, Write

MANIFEST = """\
name: x
runtime:
  auth: {api-key: {keys: ['${env:KEY}', plain]}}
datasets:
  - {from: 'postgres:${secrets:TABLE}', name: a, params: {pg_pass: '${secrets:PASS}', pg_host: h}}
catalogs:
  - {from: postgres, name: shop, params: {pg_user: '${secrets:PGUSER}'}}
models:
  - {from: 'openai:gpt-4o', name: chat, params: {openai_api_key: '${other:PASS}'}}
tools:
  - {from: 'mcp:npx', name: files, env: {TOKEN: '${secrets:TOKEN}'}}
views:
  - {name: v, sql: "SELECT '${secrets:NOT}' AS a"}
"""


class Store:
    def __init__(self, secrets: Mapping[str, str]) -> None:
        self._secrets = secrets

    def get(self, name: str) -> str | None:
        return self._secrets.get(name)


@pytest.fixture
def resolver() -> SecretResolver:
    return SecretResolver(
        {"env": Store({"a": "first", "b": "B", "empty": ""}), "vault": Store({"a": "${env:b}"})}
    )


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("plain", "plain"),
        ("${env:a}", "first"),
        ("x-${ env : a }-${env:b}", "x-first-B"),
        ("${secrets:b}", "B"),
        ("[${env:empty}]", "[]"),
        ("$env:a ${a} {env:a} $${env:b}", "$env:a ${a} {env:a} $B"),
    ],
)
def test_references_are_filled_in(resolver: SecretResolver, text: str, expected: str) -> None:
    assert resolver.expand(text) == expected


def test_last_declared_store_wins_and_secrets_are_not_expanded_again(
    resolver: SecretResolver,
) -> None:
    assert resolver.expand("${secrets:a}") == "${env:b}"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("${secrets:x}", "secret 'x' was not found in 'vault', 'env'; add it there"),
        ("${env:x}", "secret 'x' was not found in 'env'; add it there"),
        ("${evn:x}", "no secret store 'evn'; known: env, vault, secrets"),
        ("${env: }", "the secret reference '${env:}' names no secret"),
    ],
)
def test_missing_secrets_are_named_without_values(
    resolver: SecretResolver, text: str, message: str
) -> None:
    with pytest.raises(CarawayError) as caught:
        resolver.expand("${env:a}" + text)
    assert caught.value.message.startswith(message)
    assert "first" not in caught.value.message


def test_expand_all_names_the_key(resolver: SecretResolver) -> None:
    assert resolver.expand_all({"k": "${env:b}", "l": "x"}) == {"k": "B", "l": "x"}
    with pytest.raises(CarawayError, match="'k': secret 'x' was not found"):
        resolver.expand_all({"k": "${env:x}"})


def test_resolver_of_a_manifest(write: Write, loads: Loads, tmp_path: Path) -> None:
    write("FROM_DOTENV=d\nSHARED=dotenv", ".env")
    write("mounted\n", "run/token")
    write("OTHER='o # o'", "other.env")
    manifest = loads(
        "secrets: [{from: env, name: env}, {from: 'file:run', name: files},"
        " {from: dotenv, name: other, params: {path: other.env}}]"
    )
    resolver = build_resolver(manifest, {"SHARED": "environment"})
    assert resolver.expand("${env:from_dotenv} ${secrets:shared}") == "d environment"
    assert resolver.expand("${files:token} ${secrets:OTHER}") == "mounted o # o"


def test_manifest_without_stores_knows_no_secret(loads: Loads) -> None:
    resolver = build_resolver(loads("secrets: []"), {"A": "a"})
    with pytest.raises(CarawayError, match="was not found in any store: none is declared"):
        resolver.expand("${secrets:A}")


def test_missing_secrets_are_named_with_their_places(write: Write) -> None:
    manifest = load(write(MANIFEST))
    found = {each.path: each.message for each in references.problems(manifest, {})}
    assert found.keys() == {
        "dataset 'a': from",
        "dataset 'a': params.pg_pass",
        "catalog 'shop': params.pg_user",
        "model 'chat': params.openai_api_key",
        "tool 'files': env.TOKEN",
        "runtime.auth.api-key.keys[0]",
    }
    assert "secret 'PASS' was not found in 'env'" in found["dataset 'a': params.pg_pass"]
    assert "no secret store 'other'" in found["model 'chat': params.openai_api_key"]


def test_secrets_that_are_there_are_fine(write: Write) -> None:
    manifest = load(write(MANIFEST.replace("other:", "env:")))
    environ = dict.fromkeys(("KEY", "TABLE", "PASS", "PGUSER", "TOKEN"), "s3cret")
    assert not list(references.problems(manifest, environ))


def test_a_store_that_cannot_be_opened_is_a_problem(write: Write) -> None:
    text = "secrets: [{from: 'dotenv:gone/.env', name: files}]\n"
    manifest = load(write(text + MANIFEST))
    problems = list(references.problems(manifest, {}))
    assert problems and all("s3cret" not in each.message for each in problems)
