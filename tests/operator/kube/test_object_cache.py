from caraway_kube.api.kinds import SERVICE, Object, ObjectRef
from caraway_operator.kube.object_cache import ObjectCache


def service(name: str, version: str, cluster: str = "shop", uid: str = "u") -> Object:
    labels = {"app.kubernetes.io/name": "caraway", "app.kubernetes.io/instance": cluster}
    metadata = {"name": name, "namespace": "web", "labels": labels, "uid": uid,
                "resourceVersion": version, "managedFields": ["much"]}  # fmt: skip
    return {"kind": "Service", "metadata": metadata}


def test_changes_are_reported_by_cluster() -> None:
    told: list[tuple[str, str]] = []
    objects = ObjectCache(lambda *which: told.append(which))

    objects.put(service("a", "1"))
    objects.put(service("a", "1"))
    objects.drop(ObjectRef("Service", "web", "a"))

    assert told == [("web", "shop"), ("web", "shop")]


def test_an_older_version_is_ignored() -> None:
    objects = ObjectCache()
    objects.put(service("a", "10"))
    objects.put(service("a", "9"))

    assert objects.version(ObjectRef("Service", "web", "a")) == "10"


def test_objects_that_a_list_lacks_are_removed() -> None:
    objects = ObjectCache()
    objects.put(service("a", "1"))
    objects.put(service("b", "1", "other"))

    objects.replace(SERVICE, None, [service("b", "1", "other")])

    assert not objects.of_cluster("web", "shop")
    assert len(objects) == 1


def test_a_list_of_one_namespace_does_not_affect_others() -> None:
    objects = ObjectCache()
    objects.put(service("a", "1"))

    objects.replace(SERVICE, ["elsewhere"], [])

    assert len(objects) == 1


def test_deleting_an_earlier_object_does_not_remove_its_successor() -> None:
    objects = ObjectCache()
    objects.put(service("a", "5", uid="new"))
    objects.drop(ObjectRef("Service", "web", "a"), "old")

    assert len(objects) == 1


def test_managed_fields_are_not_cached() -> None:
    objects = ObjectCache()
    objects.put(service("a", "1"))

    [kept] = objects.of_cluster("web", "shop").values()
    assert "managedFields" not in kept["metadata"]
    objects.put({"kind": "Service", "metadata": {"name": "b", "namespace": "web"}})
    assert len(objects) == 1


def test_an_object_whose_cluster_label_changes_is_missing_from_the_first_cluster() -> None:
    told: list[tuple[str, str]] = []
    objects = ObjectCache(lambda *which: told.append(which))
    objects.put(service("a", "1"))
    objects.put(service("a", "2", "other"))

    assert not objects.of_cluster("web", "shop")
    assert list(objects.of_cluster("web", "other")) == [ObjectRef("Service", "web", "a")]
    assert told == [("web", "shop"), ("web", "shop"), ("web", "other")]
    objects.put({**service("a", "3"), "metadata": {**service("a", "3")["metadata"], "labels": {}}})
    assert len(objects) == 0
