from dataclasses import replace
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from caraway_core.ids import TableName
from caraway_core.manifest import Dataset
from caraway_scheduler.catalog import changes
from caraway_scheduler.catalog.states import DatasetState


def dataset(name: str, path: str = "a.csv") -> Dataset:
    return Dataset(name, f"file:{path}", "file", path, Path("/"))


def states(*datasets: Dataset) -> dict[TableName, DatasetState]:
    return {TableName(one.name): DatasetState(one) for one in datasets}


def test_added_replaced_and_removed_are_distinguished() -> None:
    found = changes.compare(
        states(dataset("kept"), dataset("moved"), dataset("gone")),
        [dataset("kept"), dataset("moved", "b.csv"), dataset("new")],
    )
    assert [one.name for one in found.added] == ["new"]
    assert [one.name for one in found.replaced] == ["moved"]
    assert found.removed == ("gone",)


def test_same_manifest_changes_nothing() -> None:
    assert not changes.compare(states(dataset("a")), [dataset("a")])


def test_each_setting_of_a_dataset_counts() -> None:
    one = dataset("a")
    for other in (replace(one, params={"csv_delimiter": ";"}), replace(one, access="read_write")):
        assert changes.compare(states(one), [other]).replaced == (other,)


@given(st.sets(st.sampled_from("abcdef")), st.sets(st.sampled_from("abcdef")))
def test_changes_lead_from_the_old_names_to_the_new(old: set[str], new: set[str]) -> None:
    found = changes.compare(states(*map(dataset, old)), map(dataset, new))
    names = (old - set(found.removed)) | {one.name for one in found.added}
    assert names == new
