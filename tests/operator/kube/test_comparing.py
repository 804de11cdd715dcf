from typing import Any

import pytest

from caraway_operator.kube.comparing import covers, without_empty, without_nulls


@pytest.mark.parametrize(
    ("desired", "live"),
    [
        ({"a": 1}, {"a": 1, "b": 2}),
        ({"cpu": "1000m"}, {"cpu": "1"}),
        ({"memory": "1024Mi"}, {"memory": "1Gi"}),
        ({"cpu": 2}, {"cpu": "2"}),
        ({"emptyDir": {}}, {"emptyDir": {}}),
        ({"ingress": []}, {}),
        ({"emptyDir": {}}, {"emptyDir": {"medium": ""}}),
        ([{"name": "a", "x": 1}], [{"name": "injected"}, {"name": "a", "x": 1, "y": 2}]),
        (["b", "a"], ["b", "a"]),
    ],
)
def test_objects_that_cover_the_desired_one(desired: Any, live: Any) -> None:
    assert covers(desired, live)


@pytest.mark.parametrize(
    ("desired", "live"),
    [
        ({"a": 1}, {}),
        ({"a": 1}, {"a": 2}),
        ({"cpu": "1"}, {"cpu": "2"}),
        (["a", "b"], ["b", "a"]),
        (["a"], ["a", "b"]),
        ([{"name": "a"}], [{"name": "b"}]),
        ([{"name": "a", "x": 1}], [{"name": "a", "x": 2}]),
        ({"a": False}, {"a": True}),
        ({"a": True}, {"a": "true"}),
        ({"a": {"b": 1}}, {"a": "b"}),
        ({"ingress": []}, {"ingress": [{}]}),
        ({"selector": {"a": "1"}}, {"selector": {"a": "1", "b": "2"}}),
        ({"podSelector": {"matchLabels": {"a": "1"}}}, {"podSelector": {"matchLabels": {}}}),
        ({"ports": [{"port": 1}]}, {"ports": [{"port": 1}, {"port": 2}]}),
        ([{"key": "a", "operator": "Exists"}], [{"key": "a", "operator": "Exists"}, {"key": "b"}]),
    ],
)
def test_objects_that_do_not_cover_the_desired_one(desired: Any, live: Any) -> None:
    assert not covers(desired, live)


def test_empty_values_are_removed() -> None:
    assert without_empty({"a": {}, "b": [], "c": None, "d": 0}) == {"d": 0}


def test_nulls_are_removed_recursively() -> None:
    assert without_nulls({"a": None, "b": [{"c": None, "d": 1}]}) == {"b": [{"d": 1}]}
