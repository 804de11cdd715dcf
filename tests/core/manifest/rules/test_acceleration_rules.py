"""Datasets that follow changes: their requirements, and their partitions."""

import pytest

from caraway_core.manifest import load
from tests.core.manifest.accelerating import dataset
from tests.core.manifest.conftest import Refuses, Write


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ("partition_by: [a]", "'a' cannot part rows that change"),
        ("partition_by: ['bucket(4, b)']", "'b' has to be a column of the 'primary_key'"),
    ],
)
def test_rows_that_change_are_parted_by_their_key(
    refuses: Refuses, keys: str, message: str
) -> None:
    problems = refuses(dataset(f"refresh_mode: changes, primary_key: a, {keys}"))
    assert any(message in problem for problem in problems), problems


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ("primary_key: a, partition_by: [b]", "'b' has to be a column of the 'primary_key'"),
        ("primary_key: a, partition_by: ['a % 2']", "'a % 2' parts rows with one key; write"),
        (
            "indexes: {b: unique}, partition_by: ['bucket(4, a)']",
            "'bucket(4, a)' may part rows with the same 'b', whose index is 'unique'",
        ),
    ],
)
def test_rows_with_one_key_are_never_parted(refuses: Refuses, keys: str, message: str) -> None:
    (problem,) = refuses("name: a\n" + dataset(keys))
    assert message in problem


def test_rows_with_one_key_may_be_parted_by_a_part_of_it(write: Write) -> None:
    for keys in (
        'primary_key: "(a, b)", partition_by: [b]',
        "primary_key: a, partition_by: ['bucket(1, c)'], indexes: {b: unique}",
        "primary_key: a, partition_by: ['bucket(8, a)'], indexes: {b: enabled}",
    ):
        load(write("name: a\n" + dataset(keys)))


def test_changes_need_a_key_in_the_file_engine(refuses: Refuses) -> None:
    keys = "engine: duckdb, refresh_mode: changes"
    (problem,) = refuses("name: a\n" + dataset(keys, origin="postgres:t"))
    assert "refresh_mode: 'changes' needs a 'primary_key'" in problem
