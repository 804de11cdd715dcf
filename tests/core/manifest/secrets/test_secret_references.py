"""References to secrets that are not there."""

from caraway_core.manifest import load
from caraway_core.manifest.secrets import secret_references
from tests.core.manifest.conftest import Write

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


def test_missing_secrets_are_named_with_their_places(write: Write) -> None:
    manifest = load(write(MANIFEST))
    found = {each.path: each.message for each in secret_references.problems(manifest, {})}
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
    assert not list(secret_references.problems(manifest, environ))


def test_a_store_that_cannot_be_opened_is_a_problem(write: Write) -> None:
    text = "secrets: [{from: 'dotenv:gone/.env', name: files}]\n"
    manifest = load(write(text + MANIFEST))
    problems = list(secret_references.problems(manifest, {}))
    assert problems and all("s3cret" not in each.message for each in problems)
