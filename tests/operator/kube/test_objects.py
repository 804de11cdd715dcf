from caraway_operator.kube.kinds import SERVICE, Object, Ref
from caraway_operator.kube.objects import Objects


def service(name: str, version: str, cluster: str = "shop", uid: str = "u") -> Object:
    labels = {"app.kubernetes.io/name": "caraway", "app.kubernetes.io/instance": cluster}
    metadata = {"name": name, "namespace": "web", "labels": labels, "uid": uid,
                "resourceVersion": version, "managedFields": ["much"]}  # fmt: skip
    return {"kind": "Service", "metadata": metadata}


def test_changes_are_told_by_cluster() -> None:
    told: list[tuple[str, str]] = []
    objects = Objects(lambda *which: told.append(which))

    objects.put(service("a", "1"))
    objects.put(service("a", "1"))
    objects.drop(Ref("Service", "web", "a"))

    assert told == [("web", "shop"), ("web", "shop")]


def test_an_older_version_changes_nothing() -> None:
    objects = Objects()
    objects.put(service("a", "10"))
    objects.put(service("a", "9"))

    assert objects.version(Ref("Service", "web", "a")) == "10"


def test_a_listing_says_what_is_gone() -> None:
    objects = Objects()
    objects.put(service("a", "1"))
    objects.put(service("b", "1", "other"))

    objects.replace(SERVICE, None, [service("b", "1", "other")])

    assert not objects.of("web", "shop")
    assert len(objects) == 1


def test_a_listing_of_one_namespace_says_nothing_of_others() -> None:
    objects = Objects()
    objects.put(service("a", "1"))

    objects.replace(SERVICE, ["elsewhere"], [])

    assert len(objects) == 1


def test_the_end_of_an_earlier_object_of_the_name_is_not_that_of_this_one() -> None:
    objects = Objects()
    objects.put(service("a", "5", uid="new"))
    objects.drop(Ref("Service", "web", "a"), "old")

    assert len(objects) == 1


def test_what_nobody_looks_at_is_not_kept() -> None:
    objects = Objects()
    objects.put(service("a", "1"))

    [kept] = objects.of("web", "shop").values()
    assert "managedFields" not in kept["metadata"]
    objects.put({"kind": "Service", "metadata": {"name": "b", "namespace": "web"}})
    assert len(objects) == 1


def test_an_object_whose_labels_name_another_cluster_is_missed_by_the_first() -> None:
    told: list[tuple[str, str]] = []
    objects = Objects(lambda *which: told.append(which))
    objects.put(service("a", "1"))
    objects.put(service("a", "2", "other"))

    assert not objects.of("web", "shop")
    assert list(objects.of("web", "other")) == [Ref("Service", "web", "a")]
    assert told == [("web", "shop"), ("web", "shop"), ("web", "other")]
    objects.put({**service("a", "3"), "metadata": {**service("a", "3")["metadata"], "labels": {}}})
    assert len(objects) == 0
