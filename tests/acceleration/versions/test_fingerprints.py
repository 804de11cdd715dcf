"""Fingerprints of definitions outlive releases: they depend only on keys that define rows."""

from dataclasses import replace
from pathlib import Path

import pytest

from caraway_acceleration.refresh.plans import subject_of
from caraway_acceleration.versions.fingerprints import (
    earlier_fingerprint,
    fingerprint,
    is_earlier_form,
)
from caraway_core.manifest import Dataset
from caraway_core.manifest.values.acceleration import Acceleration, Index
from caraway_core.manifest.values.search_columns import Chunking, EmbeddedColumn, SearchColumns
from caraway_core.manifest.values.values import DeclaredColumn
from caraway_core.partitions.keys import PartitionBy, parse

KEPT = Acceleration(
    primary_key=("id",),
    sort_by=("at DESC",),
    partition_by=PartitionBy((parse("bucket(4, id)"), parse("region"))),
)
COLUMNS = (DeclaredColumn("id", "BIGINT"), DeclaredColumn("at", "TIMESTAMP", "when"))
ORDERS = Dataset("orders", "cdc:orders", "cdc", "orders", Path("/m"), columns=COLUMNS)


def test_stored_fingerprints_are_found_by_every_release() -> None:
    # A change of these texts makes each cluster load its datasets again, and lose those of `cdc:`.
    assert fingerprint(ORDERS, KEPT) == "v2-2d09eeca1d929f19"
    assert earlier_fingerprint(ORDERS, KEPT) == "c28cc9683b7dd3ce"


def test_an_earlier_version_is_accepted_and_nothing_else() -> None:
    subject = subject_of(ORDERS, KEPT)
    assert subject.accepts("v2-2d09eeca1d929f19") and subject.accepts("c28cc9683b7dd3ce")
    assert not subject.accepts("") and not subject.accepts("v2-0000000000000000")
    assert is_earlier_form("c28cc9683b7dd3ce")
    assert not is_earlier_form("") and not is_earlier_form(subject.origin)


def test_versions_name_their_definition_for_this_release_and_the_one_before() -> None:
    # The release before refuses rows of `cdc:` whose `origin` is another one.
    names = subject_of(ORDERS, KEPT).names
    assert names == {"origin": "c28cc9683b7dd3ce", "definition": "v2-2d09eeca1d929f19"}


@pytest.mark.parametrize(
    "dataset",
    [
        replace(ORDERS, description="All orders"),
        replace(ORDERS, columns=(COLUMNS[0], DeclaredColumn("at", "TIMESTAMP", "then"))),
        replace(ORDERS, params={"token": "${secrets:T}"}),
    ],
)
def test_what_does_not_define_rows_changes_nothing(dataset: Dataset) -> None:
    assert fingerprint(dataset, KEPT) == fingerprint(ORDERS, KEPT)


def test_each_part_of_a_definition_counts() -> None:
    embedded = EmbeddedColumn("at", "small")
    datasets = [
        ORDERS,
        replace(ORDERS, source="cdc:other"),
        replace(ORDERS, columns=COLUMNS[:1]),
        replace(ORDERS, columns=(DeclaredColumn("id", "INT"), COLUMNS[1])),
        replace(ORDERS, search=SearchColumns(embedded=(embedded,))),
        replace(ORDERS, search=SearchColumns(embedded=(replace(embedded, embedder="big"),))),
        replace(ORDERS, search=SearchColumns(embedded=(replace(embedded, chunking=Chunking()),))),
        replace(
            ORDERS,
            search=SearchColumns(embedded=(replace(embedded, chunking=Chunking(target_size=9)),)),
        ),
    ]
    accelerations = [
        replace(KEPT, primary_key=()),
        replace(KEPT, sort_by=()),
        replace(KEPT, partition_by=PartitionBy()),
        replace(KEPT, partition_by=PartitionBy((parse("bucket(5, id)"),))),
        replace(KEPT, partition_by=PartitionBy((parse("id + 1"),))),
        replace(KEPT, indexes=(Index(("at",), is_unique=True),)),
        replace(KEPT, refresh=replace(KEPT.refresh, sql="SELECT id FROM orders")),
    ]
    found = [fingerprint(each, KEPT) for each in datasets]
    found += [fingerprint(ORDERS, each) for each in accelerations]
    assert len(set(found)) == len(found)
    assert fingerprint(ORDERS, replace(KEPT, indexes=(Index(("at",)),))) == found[0]
