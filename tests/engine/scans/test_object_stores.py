"""Object stores are built once, with variables that the environment has for a moment only."""

import os
from typing import Any

import pyarrow as pa
import pytest

from caraway_core.tables import FileScan, FilesTable, StoreSpec
from caraway_engine.scans import object_stores

SCHEMA = pa.schema([("a", pa.int64())])


@pytest.mark.parametrize(
    ("kind", "options", "variables"),
    [
        ("s3", {"region": "eu", "skip_signature": "true"}, {"AWS_SKIP_SIGNATURE": "true"}),
        ("gs", {"skip_signature": "true"}, {"GOOGLE_SKIP_SIGNATURE": "true"}),
        ("abfss", {"account_name": "a", "endpoint": "http://x"},
         {"AZURE_STORAGE_ENDPOINT": "http://x"}),
        ("s3", {"access_key_id": "a", "secret_access_key": "b"}, {}),
    ],
)  # fmt: skip
def test_options_without_an_argument_go_by_the_environment_for_a_moment(
    kind: Any, options: dict[str, str], variables: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[dict[str, str | None]] = []
    names = [*variables, "AWS_SKIP_SIGNATURE"]

    def make(bucket: str, given: Any) -> object:
        seen.append({name: os.environ.get(name) for name in variables})
        assert (bucket, given) == ("bucket", options)
        return object()

    monkeypatch.setenv("AWS_SKIP_SIGNATURE", "before")
    monkeypatch.setattr(object_stores, "_made", type(object_stores._made)())
    monkeypatch.setattr(object_stores, "_MAKERS", {kind: make})
    store = StoreSpec(kind, "bucket", f"alias-{kind}", options)
    made = object_stores._made_once(store)
    assert object_stores._made_once(store) is made and len(seen) == 1
    assert seen == [variables]
    after = {name: os.environ.get(name) for name in names}
    assert after == {**dict.fromkeys(names), "AWS_SKIP_SIGNATURE": "before"}


def test_the_environment_is_restored_when_a_store_cannot_be_made(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fail(_bucket: str, _options: Any) -> object:
        raise ValueError("no such region")

    monkeypatch.delenv("GOOGLE_SKIP_SIGNATURE", raising=False)
    monkeypatch.setattr(object_stores, "_made", type(object_stores._made)())
    monkeypatch.setattr(object_stores, "_MAKERS", {"gs": fail})
    with pytest.raises(ValueError, match="no such region"):
        object_stores._made_once(StoreSpec("gs", "b", "x", {"skip_signature": "true"}))
    assert "GOOGLE_SKIP_SIGNATURE" not in os.environ
    assert not object_stores._made


def test_stores_that_were_not_used_longest_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(object_stores, "_made", type(object_stores._made)())
    monkeypatch.setattr(object_stores, "_KEPT", 2)
    monkeypatch.setattr(object_stores, "_MAKERS", {"s3": lambda _bucket, _options: object()})
    for alias in ("a", "b", "c"):
        object_stores._made_once(StoreSpec("s3", "b", alias, {}))
    assert list(object_stores._made) == ["b", "c"]


def test_each_store_of_a_table_is_made_known_once() -> None:
    class Context:
        def __init__(self) -> None:
            self.known: list[tuple[str, str]] = []

        def register_object_store(self, schema: str, store: Any, host: str) -> None:
            self.known.append((schema, host))

    options = {"region": "eu-central-1", "access_key_id": "a", "secret_access_key": "b"}
    one, two = (StoreSpec("s3", "bucket", alias, options) for alias in ("test-one", "test-two"))
    scans = [FileScan("parquet", ("x",), SCHEMA, ".parquet", store=store)
             for store in (one, two, one, None)]  # fmt: skip
    context = Context()
    object_stores.register(context, FilesTable(SCHEMA, tuple(scans)))
    assert context.known == [("s3://", "test-one"), ("s3://", "test-two")]
