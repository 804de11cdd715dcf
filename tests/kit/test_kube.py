"""The emulated API follows the rules of Kubernetes that the operator relies on."""

import pytest

from caraway_kube.api import client, errors
from caraway_kube.api.access import ApiAccess
from caraway_kube.api.kinds import SERVICE, Object
from caraway_kube.naming import OPERATOR
from tests.kit.kube import emulated
from tests.kit.kube_rules import ApiError, admitted


def service(**spec: object) -> Object:
    ports = [{"name": "http", "port": 80}]
    return {"kind": "Service", "metadata": {"name": "a"}, "spec": {"ports": ports, **spec}}


def stateful_set(**spec: object) -> Object:
    container = {"name": "main", "image": "x", "volumeMounts": [{"name": "d", "mountPath": "/d"}]}
    pod = {"containers": [container], "volumes": [{"name": "d", "emptyDir": {}}]}
    template = {"metadata": {"labels": {"a": "b"}}, "spec": pod}
    given = {"selector": {"matchLabels": {"a": "b"}}, "template": template, **spec}
    return {"kind": "StatefulSet", "metadata": {"name": "a"}, "spec": given}


def budget(**spec: object) -> Object:
    return {"kind": "PodDisruptionBudget", "metadata": {"name": "a"}, "spec": spec}


def config_map(value: str, **more: object) -> Object:
    return {"kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"a": value}, **more}


_SAME = [{"name": "http", "port": 80}, {"name": "http", "port": 81}]
_HEADLESS = {"clusterIP": "None"}


@pytest.mark.parametrize(
    ("made", "known", "why"),
    [
        (service(ports=_SAME), None, "Duplicate value: 'http'"),
        (service(ports=[{"port": 80}, {"port": 81}]), None, "name: Required value"),
        (service(ports=[{"name": "http", "port": 0}]), None, "Invalid value: 0"),
        (service(ports=[{"name": "http", "port": 80, "nodePort": 30000}]), None, "nodePort"),
        (service(clusterIP="10.0.0.2"), service(clusterIP="10.0.0.1"), "may not change"),
        (service(**_HEADLESS), service(clusterIP="10.0.0.1"), "may not change"),
        (budget(minAvailable=1, maxUnavailable=1), None, "cannot be both set"),
        (config_map("b"), config_map("a", immutable=True), "immutable"),
        (stateful_set(serviceName="b"), stateful_set(serviceName="a"), "are forbidden"),
        (stateful_set(selector={"matchLabels": {"a": "c"}}), None, "does not match"),
    ],
)
def test_what_kubernetes_refuses_is_refused(made: Object, known: Object | None, why: str) -> None:
    with pytest.raises(ApiError, match=why) as caught:
        admitted(made, known and admitted(known, None))

    assert caught.value.status == 422


def test_an_address_that_is_left_out_stays() -> None:
    known = admitted(service(clusterIP="None"), None)

    assert admitted(service(), known)["spec"]["clusterIP"] == "None"


async def test_updates_need_the_newest_version_and_change_nothing_where_nothing_differs() -> None:
    async with (
        emulated() as api,
        client.open_client(ApiAccess(str(api.url).rstrip("/")), OPERATOR) as kube,
    ):
        made = await kube.create({**service(), "metadata": {"name": "a", "namespace": "web"}})
        again = await kube.replace(made)
        assert again["metadata"]["resourceVersion"] == made["metadata"]["resourceVersion"]
        changed = await kube.replace({**made, "spec": {**made["spec"], "type": "NodePort"}})
        assert changed["spec"]["ports"][0]["nodePort"]

        with pytest.raises(errors.ConflictError):
            await kube.replace(made)
        with pytest.raises(errors.ObjectNotFoundError):
            await kube.replace({**made, "metadata": {**made["metadata"], "name": "b"}})


async def test_an_object_with_a_finalizer_goes_when_the_finalizer_does() -> None:
    async with (
        emulated() as api,
        client.open_client(ApiAccess(str(api.url).rstrip("/")), OPERATOR) as kube,
    ):
        metadata = {"name": "a", "namespace": "web", "finalizers": ["x/y"]}
        made = await kube.create({**service(), "metadata": metadata})
        await kube.delete(SERVICE, "web", "a", made["metadata"]["uid"])
        left = await kube.get(SERVICE, "web", "a")
        assert left["metadata"]["deletionTimestamp"]

        await kube.replace({**left, "metadata": {**left["metadata"], "finalizers": []}})

        assert not api.names("Service")


async def test_what_an_owner_leaves_is_removed_or_orphaned() -> None:
    async with (
        emulated() as api,
        client.open_client(ApiAccess(str(api.url).rstrip("/")), OPERATOR) as kube,
    ):
        for orphans in (True, False):
            owner = api.put(service())
            uid = owner["metadata"]["uid"]
            child = config_map("a")
            child["metadata"] = {"name": "child", "ownerReferences": [{"uid": uid}]}
            api.put(child)
            await kube.delete(SERVICE, "web", "a", uid, "Orphan" if orphans else "Background")

            assert api.names("ConfigMap") == (["child"] if orphans else [])


async def test_a_dry_run_judges_and_stores_nothing() -> None:
    async with (
        emulated() as api,
        client.open_client(ApiAccess(str(api.url).rstrip("/")), OPERATOR) as kube,
    ):
        named = {"generateName": "a-", "namespace": "web"}
        await kube.create({**service(), "metadata": named}, is_dry_run=True)
        with pytest.raises(errors.ObjectInvalidError):
            await kube.create({**service(ports=_SAME), "metadata": named}, is_dry_run=True)

        assert not api.names("Service")
