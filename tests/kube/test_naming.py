"""Names of objects: valid for Kubernetes, and never those of another cluster."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from caraway_kube import naming

# The names that the API server accepts.
SERVICE = re.compile(r"[a-z]([-a-z0-9]{0,61}[a-z0-9])?")
LABEL = re.compile(r"([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?")
PIECES = st.sampled_from([*naming.PARTS, "a", "b", "x1", "-", "-", "--", "9", "A", ".", "é", "_"])
NAMES = st.lists(PIECES, max_size=6).map("".join) | st.text("ab-9", max_size=45)


def _objects(cluster: str) -> set[str]:
    return {cluster, *(naming.object_name(cluster, part) for part in naming.PARTS)}


@given(NAMES, NAMES)
def test_two_clusters_never_own_objects_of_one_name(one: str, other: str) -> None:
    if one != other and not naming.name_problem(one) and not naming.name_problem(other):
        assert _objects(one).isdisjoint(_objects(other))


@given(NAMES)
def test_an_accepted_name_makes_names_that_kubernetes_accepts(cluster: str) -> None:
    if naming.name_problem(cluster) is None:
        for name in _objects(cluster):
            assert SERVICE.fullmatch(name)
        # A pod of the executors is labelled with its name and the hash of its template.
        assert LABEL.fullmatch(f"{cluster}-executor-{'f' * 10}")
        assert naming.label_value(cluster) == cluster


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("", "cannot be the name of a Service"),
        ("a" * 41, "has 41 characters; at most 40 are allowed"),
        ("9a", "begin with a letter"),
        ("a-", "cannot be the name of a Service"),
        ("A", "cannot be the name of a Service"),
        ("a.b", "cannot be the name of a Service"),
        ("a\n", "cannot be the name of a Service"),
        ("\u0430", "cannot be the name of a Service"),
        ("a-head", "is the name of an object of the cluster 'a'; choose one that does not end"),
        ("a-b-tls", "of the cluster 'a-b'"),
    ],
)
def test_other_names_are_refused_with_the_reason(name: str, says: str) -> None:
    problem = naming.name_problem(name)
    assert problem is not None and says in problem


@pytest.mark.parametrize("name", ["a", "head", "tls-head-1", "headhead", "a" * 40, "a-heads"])
def test_names_that_only_look_like_parts_are_accepted(name: str) -> None:
    assert naming.name_problem(name) is None


@given(st.text(max_size=80))
def test_any_text_becomes_the_value_of_a_label(text: str) -> None:
    assert LABEL.fullmatch(naming.label_value(text))


def test_the_selectors_of_components_do_not_overlap() -> None:
    every = [
        naming.component_selector(cluster, component)
        for cluster in ("a", "a-b")
        for component in (naming.HEAD, naming.SCHEDULER, naming.EXECUTOR, naming.STATE)
    ]
    assert len({naming.selector_text(each) for each in every}) == len(every)
    for each in every:
        cluster = naming.cluster_selector(each[naming.INSTANCE_LABEL])
        assert cluster.items() <= each.items()
