"""The operator's own Secrets and those of the spec, against the emulated API."""

import base64
import datetime as dt
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from caraway_kube.api import client, errors
from caraway_kube.api.access import ApiAccess
from caraway_kube.api.client import KubeClient
from caraway_kube.api.kinds import ObjectRef
from caraway_kube.naming import OPERATOR
from caraway_kube.resources import parsing
from caraway_operator.manifests import DesiredCluster
from caraway_operator.references import referenced_objects
from caraway_operator.references.referenced_objects import ReferencedObjects
from tests.kit.kube import Emulator, emulated
from tests.operator.manifests import clusters

NOW = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)


def desired(uid: str = "u-1", **sections: Any) -> DesiredCluster:
    return clusters.desired(sections, name="shop", uid=uid)


@asynccontextmanager
async def serving() -> AsyncIterator[tuple[Emulator, KubeClient]]:
    async with (
        emulated() as api,
        client.open_client(ApiAccess(str(api.url).rstrip("/")), OPERATOR) as kube,
    ):
        yield api, kube


def secret(api: Emulator, name: str, **values: str) -> None:
    data = {key: base64.b64encode(value.encode()).decode() for key, value in values.items()}
    metadata = {"name": name, "namespace": "shop"}
    api.put({"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "data": data})


def value(api: Emulator, name: str, key: str) -> str:
    return base64.b64decode(api.get("Secret", name, "shop")["data"][key]).decode()


async def read(
    kube: KubeClient, cluster: DesiredCluster, now: dt.datetime = NOW
) -> ReferencedObjects:
    return await referenced_objects.read_referenced(kube, cluster, now)


async def test_own_secrets_are_made_once_and_never_changed() -> None:
    async with serving() as (api, kube):
        first = await read(kube, desired())
        names = api.names("Secret")
        assert {each.name for each in first.created} == set(names) and names
        assert len(first.token) >= 32 and first.missing == ()
        before = {name: api.get("Secret", name, "shop") for name in names}
        again = await read(kube, desired())
        assert again.created == ()
        assert (again.token, again.checksums) == (first.token, first.checksums)
        assert {name: api.get("Secret", name, "shop") for name in names} == before


async def test_two_clusters_have_no_secret_in_common() -> None:
    async with serving() as (_api, kube):
        one = await read(kube, desired())
        other = await read(kube, clusters.desired({}, name="other", uid="u-2"))
        assert one.token != other.token
        assert not {each.name for each in one.created} & {each.name for each in other.created}


async def test_the_token_is_in_no_text() -> None:
    async with serving() as (_api, kube):
        found = await read(kube, desired())
        assert found.token and found.token not in repr(found)


async def test_given_secrets_are_read_and_none_is_made_for_them() -> None:
    async with serving() as (api, kube):
        secret(api, "mine", token="  s3cret\n")
        found = await read(kube, desired(token={"secretName": "mine"}))
        assert found.token == "s3cret"
        assert "mine" in found.checksums
        assert not any("token" in each.name for each in found.created)


async def test_missing_secrets_are_all_named_with_what_to_do() -> None:
    async with serving() as (api, kube):
        secret(api, "there", key="x")
        spec: dict[str, Any] = {
            "token": {"secretName": "no-token"},
            "auth": {"apiKeys": [{"name": "no-keys", "key": "k"}, {"name": "there", "key": "key"}]},
            "secrets": [{"name": "vault", "secretName": "no-vault"}],
        }
        found = await read(kube, desired(**spec))
        assert found.token == ""
        assert sorted(found.missing) == [
            f"the Secret '{name}' of the spec does not exist; create it"
            for name in ("no-keys", "no-token", "no-vault")
        ]
        assert "there" in found.checksums


async def test_missing_keys_of_secrets_are_named() -> None:
    async with serving() as (api, kube):
        secret(api, "keys", other="x")
        secret(api, "cert", **{"tls.crt": "x"})
        spec: dict[str, Any] = {
            "auth": {"apiKeys": [{"name": "keys", "key": "reader"}]},
            "tls": {"enabled": True, "secretName": "cert"},
        }
        found = await read(kube, desired(**spec))
        assert sorted(found.missing) == [
            "the Secret 'cert' of the spec lacks the key 'tls.key'; add it",
            "the Secret 'keys' of the spec lacks the key 'reader'; add it",
        ]
        assert found.has_users


async def test_optional_secrets_of_variables_may_be_missing() -> None:
    async with serving() as (api, kube):
        secret(api, "there", other="x")
        env: list[dict[str, Any]] = [
            {"name": "A", "valueFrom": {"secretKeyRef": {"name": name, "key": "k", **more}}}
            for name, more in (("gone", {"optional": True}), ("there", {"optional": True}))
        ]
        source = [{"secretRef": {"name": "gone-too", "optional": True}}]
        found = await read(kube, desired(scheduler={"env": env, "envFrom": source}))
        assert found.missing == ()

        env[1]["valueFrom"]["secretKeyRef"].pop("optional")
        found = await read(kube, desired(scheduler={"env": env, "envFrom": source}))
        assert found.missing == ("the Secret 'there' of the spec lacks the key 'k'; add it",)


async def test_the_checksum_of_a_secret_that_went_is_kept() -> None:
    async with serving() as (api, kube):
        secret(api, "keys", reader="x")
        cluster = desired(auth={"apiKeys": [{"name": "keys", "key": "reader"}]})
        before = await read(kube, cluster)
        del api.there[ObjectRef("Secret", "shop", "keys")]

        after = await referenced_objects.read_referenced(kube, cluster, NOW, before.checksums)

        assert after.checksums == before.checksums and len(after.missing) == 1


async def test_a_secret_that_may_not_be_read_is_named_and_the_others_are_read() -> None:
    async with serving() as (api, kube):
        secret(api, "closed", key="x")
        secret(api, "open", key="x")

        def refuse(verb: str, which: ObjectRef) -> tuple[int, str] | None:
            return (403, "forbidden") if which.name == "closed" else None

        api.refuse = refuse
        keys = [{"name": "closed", "key": "key"}, {"name": "open", "key": "key"}]
        found = await read(kube, desired(auth={"apiKeys": keys}))
        assert len(found.missing) == 1
        assert "the Secret 'closed' cannot be read" in found.missing[0]
        assert "open" in found.checksums


async def test_an_api_server_that_is_away_is_an_error_and_not_a_missing_secret() -> None:
    async with serving() as (api, kube):
        await read(kube, desired())
        api.refuse = lambda _verb, _which: (503, "away")
        with pytest.raises(errors.ApiUnavailableError):
            await read(kube, desired())


@pytest.mark.parametrize(
    ("values", "is_same"),
    [({"key": "x"}, True), ({"key": "y"}, False), ({"key": "x", "more": "1"}, False), ({}, False)],
)
async def test_checksums_change_with_the_content_alone(
    values: dict[str, str], is_same: bool
) -> None:
    async with serving() as (api, kube):
        secret(api, "keys", key="x")
        spec: dict[str, Any] = {"auth": {"apiKeys": [{"name": "keys", "key": "key"}]}}
        before = (await read(kube, desired(**spec))).checksums["keys"]
        del api.there[ObjectRef("Secret", "shop", "keys")]
        secret(api, "keys", **values)
        after = (await read(kube, desired(**spec))).checksums["keys"]
        assert (after == before) is is_same
        assert "x" not in before or len(before) == 32


@pytest.mark.parametrize("content", [None, {}, {"token": "%%%"}, {"token": "//79"}])
async def test_a_token_that_is_no_text_is_empty_and_no_crash(
    content: dict[str, str] | None,
) -> None:
    async with serving() as (api, kube):
        metadata = {"name": "mine", "namespace": "shop"}
        made: dict[str, Any] = {"apiVersion": "v1", "kind": "Secret", "metadata": metadata}
        if content is not None:
            made["data"] = content
        api.there[ObjectRef("Secret", "shop", "mine")] = made
        found = await read(kube, desired(token={"secretName": "mine"}))
        assert found.token == "" and "mine" in found.checksums


async def test_a_secret_of_an_earlier_cluster_is_waited_for() -> None:
    async with serving() as (api, kube):
        first = await read(kube, desired(uid="old"))
        with pytest.raises(
            errors.ConflictError, match=r"earlier cluster with this name; waiting until"
        ):
            await read(kube, desired(uid="new"))
        for which in first.created:
            del api.there[ObjectRef("Secret", "shop", which.name)]
        again = await read(kube, desired(uid="new"))
        assert again.token != first.token


async def test_two_operators_at_once_agree_on_one_token() -> None:
    """The other one creates the Secret between the look at it and its creation."""
    async with serving() as (api, kube):
        others: list[str] = []

        def refuse(verb: str, which: ObjectRef) -> tuple[int, str] | None:
            if verb == "POST" and not others and which.kind == "Secret":
                others.append(which.name)
                api.refuse = lambda _verb, _which: None
                metadata = {"name": which.name, "namespace": "shop"}
                api.put({"apiVersion": "v1", "kind": "Secret", "metadata": metadata,
                         "data": {"token": base64.b64encode(b"theirs").decode()}})  # fmt: skip
            return None

        api.refuse = refuse
        found = await read(kube, desired())
        assert len(others) == 1 and not any(each.name == others[0] for each in found.created)
        assert value(api, others[0], "token") == "theirs"


async def test_certificates_are_made_for_all_names_and_renewed_in_time() -> None:
    async with serving() as (api, kube):
        spec: dict[str, Any] = {"tls": {"enabled": True, "dnsNames": ["sql.example.com"]}}
        first = await read(kube, desired(**spec))
        name = next(each for each in api.names("Secret") if each.endswith("tls"))
        before = value(api, name, "tls.crt")
        assert first.missing == () and name in first.checksums
        await read(kube, desired(**spec), NOW + dt.timedelta(days=1))
        assert value(api, name, "tls.crt") == before
        later = await read(kube, desired(**spec), NOW + dt.timedelta(days=3650))
        assert value(api, name, "tls.crt") != before
        assert later.checksums[name] != first.checksums[name]
        more: dict[str, Any] = {
            "tls": {"enabled": True, "dnsNames": ["sql.example.com", "db.example.com"]}
        }
        renewed = value(api, name, "tls.crt")
        await read(kube, desired(**more), NOW + dt.timedelta(days=3650))
        assert value(api, name, "tls.crt") != renewed


async def test_a_given_certificate_is_not_touched() -> None:
    async with serving() as (api, kube):
        secret(api, "mine", **{"tls.crt": "c", "tls.key": "k"})
        found = await read(kube, desired(tls={"enabled": True, "secretName": "mine"}))
        assert "mine" in found.checksums and value(api, "mine", "tls.crt") == "c"
        assert not any(each.endswith("ca") for each in api.names("Secret"))


@pytest.mark.parametrize(
    ("data", "expected"),
    [({"caraway.yaml": "a: 1"}, "a: 1"), ({"other": "x"}, None), (None, None), ({}, None)],
)
async def test_a_manifest_of_a_config_map(
    data: dict[str, str] | None, expected: str | None
) -> None:
    async with serving() as (api, kube):
        metadata = {"name": "config", "namespace": "shop"}
        made: dict[str, Any] = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}
        api.put(made if data is None else {**made, "data": data})
        parsed = parsing.cluster("shop", {"manifestFrom": {"configMap": {"name": "config"}}})
        assert parsed.spec is not None
        assert await referenced_objects.read_manifest(kube, "shop", parsed.spec) == expected
