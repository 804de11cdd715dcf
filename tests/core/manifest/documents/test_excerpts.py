"""The part of a manifest about one table, for users to read."""

from pathlib import Path

from caraway_core.manifest.documents import excerpts

MANIFEST = """\
version: v1
kind: Caraway
name: shop
datasets:
  # hunter1 is the old password
  - from: postgres:orders
    name: Orders
    params:
      pg_pass: hunter2
      pg_user: ${secrets:USER}
      pg_host: ${secrets:HOST}hunter3
      pg_port: 5432
      flag: true
      more: [hunter4, {deep: hunter5}]
    acceleration:
      enabled: true
      replicas: 2
      params: {token: hunter6}
  - {from: 'https://ada:hunter7@example.org/a.csv', name: sales.more}
  - {ref: other.yaml}
views:
  - {name: many, sql: SELECT 1}
  - name: long
    sql: |
      SELECT 1,
        2
"""


def found(folder: Path, name: str) -> excerpts.Excerpt | None:
    files = []
    for file, text in {
        "caraway.yaml": MANIFEST,
        "other.yaml": "from: file:a.csv\nname: apart\n",
        "broken.yaml": "a: [",
    }.items():
        (folder / file).write_text(text)
        files.append(folder / file)
    return excerpts.find([folder / "gone.yaml", files[2], *files[:2]], folder, name)


def test_secrets_and_comments_are_hidden_and_references_are_not(tmp_path: Path) -> None:
    seen = found(tmp_path, "orders")
    assert seen is not None and (seen.file, seen.line) == ("caraway.yaml", 6)
    assert "hunter" not in seen.text and "5432" not in seen.text
    assert "pg_user: ${secrets:USER}" in seen.text and "flag: true" in seen.text
    assert "replicas: 2" in seen.text
    assert seen.text.startswith("from: postgres:orders\nname: Orders\nparams:\n")
    login = found(tmp_path, "sales.more")
    assert login is not None and "//(hidden)@example.org/a.csv" in login.text


def test_views_and_files_of_their_own_are_found_by_name(tmp_path: Path) -> None:
    view, apart = found(tmp_path, "many"), found(tmp_path, "apart")
    assert view is not None and view.text == "name: many\nsql: SELECT 1\n"
    assert apart is not None and (apart.file, apart.line) == ("other.yaml", 1)
    long = found(tmp_path, "long")
    assert long is not None and long.text == "name: long\nsql: |\n  SELECT 1,\n    2\n"
    for name in ("shop", "orders2", "", "caraway.yaml"):
        assert found(tmp_path, name) is None
