from caraway_kube.api.kinds import Object
from caraway_kube.resources.limits import CarawayLimitsSpec, ResourceLimits
from caraway_operator.watching.resource_cache import ResourceCache, deleted_keys, strictest_limits


def cluster(name: str, created: str, organization: str | None = None, version: str = "1") -> Object:
    metadata = {"name": name, "namespace": "web", "creationTimestamp": created,
                "resourceVersion": version}  # fmt: skip
    return {"metadata": metadata, "spec": {"organization": organization} if organization else {}}


def limits(name: str, namespace: str = "web", **spec: object) -> Object:
    return {"metadata": {"name": name, "namespace": namespace}, "spec": spec}


def known(*found: Object) -> ResourceCache:
    return ResourceCache(
        limits={(each["metadata"]["namespace"], each["metadata"]["name"]): each for each in found}
    )


def test_the_lowest_of_several_limits_apply() -> None:
    found = known(limits("a", replicas=5, apps=2), limits("b", replicas=3))

    lowest = found.limits_of("web", "any")

    assert lowest is not None
    assert (lowest.replicas, lowest.apps) == (3, 2)


def test_limits_of_other_organizations_and_namespaces_do_not_apply() -> None:
    found = known(limits("a", organization="acme", replicas=1), limits("b", "other", replicas=1))

    assert found.limits_of("web", "else") is None
    assert found.limits_of("web", None) is None
    assert found.limits_of("web", "acme") is not None


def test_malformed_limits_are_ignored() -> None:
    assert known(limits("a", replicas="many")).limits_of("web", None) is None


def test_unlimited_is_more_than_any_number() -> None:
    found = strictest_limits(
        [
            CarawayLimitsSpec(resources=ResourceLimits(max_cpu=4)),
            CarawayLimitsSpec(replicas=2, resources=ResourceLimits(max_cpu=8, max_memory_gi=1)),
        ]
    )

    assert found is not None and found.resources is not None
    assert (found.replicas, found.resources.max_cpu, found.resources.max_memory_gi) == (2, 4, 1)


def test_age_is_compared_within_the_organization() -> None:
    found = ResourceCache()
    for each in (cluster("a", "1"), cluster("b", "2"), cluster("c", "1", "acme")):
        found.put_cluster(each)

    assert [found.older_clusters(cluster(*each)) for each in (("a", "1"), ("b", "2"))] == [0, 1]
    assert found.older_clusters(cluster("c", "1", "acme")) == 0


def test_objects_missing_from_a_list_are_deleted_unless_they_are_newer() -> None:
    held = {
        ("web", "a"): cluster("a", "1", version="5"),
        ("web", "b"): cluster("b", "1"),
        ("web", "c"): cluster("c", "1", version="9"),
        ("else", "d"): cluster("d", "1"),
    }

    assert deleted_keys(held, [cluster("b", "1")], "7", "web") == [("web", "a")]
    assert deleted_keys(held, [], "7", None) == [("web", "a"), ("web", "b"), ("else", "d")]


def test_an_older_version_is_ignored() -> None:
    found = ResourceCache()
    found.put_cluster(cluster("a", "1", version="5"))
    found.put_cluster(cluster("a", "1", "old", version="4"))

    assert found.clusters["web", "a"]["spec"] == {}
