"""Temporary credentials open only the files of one table."""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

import boto3
import httpx
import pytest

from caraway_core.errors import UnavailableError
from caraway_core.tables import StoreSpec
from caraway_gateway.iceberg import vending
from caraway_gateway.iceberg.vending import OpenedPart, VendedKeys
from caraway_plugins import sts
from caraway_plugins.sts import TemporaryKeys, TokenServiceError
from tests.gateway.iceberg.signed_lakes import BASE, BUCKET, by, lake, manifest, parquet
from tests.kit.deadlines import eventually
from tests.kit.runtime import running
from tests.kit.s3 import KEY, REGION, SECRET, S3Server, s3_server

__all__ = ["lake", "s3_server"]
OPTIONS = {"access_key_id": "A", "secret_access_key": "s", "region": "eu-west-1"}
STORE = StoreSpec("s3", "lake", "alias", OPTIONS)
ROLE = "arn:aws:iam::123456789012:role/readers"
ASKS = {"x-iceberg-access-delegation": "vended-credentials"}


def arns(*paths: str, store: StoreSpec = STORE) -> list[str]:
    found = vending.parts(store, [f"s3://{store.bucket}/{each}" for each in paths])
    return [each.arn.removeprefix("arn:aws:s3:::lake/") for each in found]


def test_few_files_are_opened_one_by_one_and_many_by_their_folder() -> None:
    assert arns("t/a", "t/b") == ["t/a", "t/b"]
    many = [f"t/year={number}/file-{number:040}" for number in range(50)]
    assert arns(*many) == ["t/*"]
    assert arns(*(each.replace("t/", "t/same/") for each in many)) == ["t/same/*"]
    # Files at the root of a bucket have no folder that only they are in.
    assert arns(*(each.replace("/", "-") for each in many)) == []
    assert arns() == []


def test_names_are_no_patterns() -> None:
    assert arns("t/*", "t/a?b", "t/$x") == ["t/${$}x", "t/${*}", "t/a${?}b"]
    wide = OpenedPart(STORE, "every*/")
    assert wide.arn == "arn:aws:s3:::lake/every${*}/*"
    china = StoreSpec("s3", "lake", "alias", {"region": "cn-north-1"})
    assert OpenedPart(china, "a").arn == "arn:aws-cn:s3:::lake/a"


def test_a_policy_only_reads_objects() -> None:
    (statement,) = json.loads(vending.policy([OpenedPart(STORE, "t/")]))["Statement"]
    assert (statement["Effect"], statement["Action"]) == ("Allow", "s3:GetObject")


def test_credentials_are_kept_while_they_last(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def assume(_spec: Any, role: str, policy: str, *_others: Any) -> TemporaryKeys:
        asked.append(policy)
        ends_at = datetime.now(UTC) + timedelta(minutes=left)
        return TemporaryKeys(f"{role}{len(asked)}", "secret", "token", ends_at)

    monkeypatch.setattr(sts, "assume", assume)
    keys, part, left = VendedKeys(ROLE, None), OpenedPart(STORE, "t/"), 60
    (first,) = keys.credentials([part])
    assert first["prefix"] == "s3://lake/t/"
    assert first["config"]["s3.access-key-id"] == f"{ROLE}1"
    assert keys.credentials([part]) == [first]
    assert keys.credentials([OpenedPart(STORE, "u/")]) != [first]
    left = 10
    keys = VendedKeys(ROLE, None)
    assert keys.credentials([part]) != keys.credentials([part])
    assert len(asked) == 4
    # Stores of one sign-in have one set of credentials; those without keys have none.
    other = StoreSpec("s3", "b", "alias", {**OPTIONS, "access_key_id": "B"})
    role = StoreSpec("s3", "c", "alias", {"region": "eu-west-1"})
    parts = [part, OpenedPart(STORE, "v/"), OpenedPart(other, "w/"), OpenedPart(role, "x/")]
    one, two, three = keys.credentials(parts)
    assert one["config"] == two["config"] != three["config"]
    assert keys.credentials([OpenedPart(STORE, "x" * 3000)]) == []


def test_a_token_service_that_is_away_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    def assume(*_given: Any) -> TemporaryKeys:
        raise TokenServiceError("the token service is away: ConnectError")

    monkeypatch.setattr(sts, "assume", assume)
    with pytest.raises(UnavailableError, match="no temporary credentials: the token service is"):
        VendedKeys(ROLE, None).credentials([OpenedPart(STORE, "t/")])


async def test_clients_read_with_credentials_of_their_table(
    tmp_path: Path, lake: S3Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    policies = []
    signed = sts.signed_headers

    def noted(url: str, body: str, *others: Any) -> dict[str, str]:
        policies.append(json.loads(parse_qs(body)["Policy"][0])["Statement"][0])
        return signed(url, body, *others)

    monkeypatch.setattr(sts, "signed_headers", noted)
    mode = (
        "access_delegation: [vended-credentials]\n"
        f"        sts_role_arn: {ROLE}\n        sts_endpoint: {lake.endpoint}"
    )
    async with running(tmp_path, manifest(lake, mode), {"S3_SECRET": SECRET}) as runtime:

        async def loaded() -> httpx.Response | None:
            answer = await runtime.api.get(f"{BASE}/t", headers={**by("ada"), **ASKS})
            return answer if answer.status_code == 200 else None

        answer = await eventually(loaded, "the dataset is loaded")
        assert answer is not None
        document = answer.json()
        uuid = document["metadata"]["table-uuid"]
        data, own = document["storage-credentials"]
        assert data["prefix"] == f"s3://{BUCKET}/t/year=20%24/one file.parquet"
        assert own["prefix"] == f"s3://{BUCKET}/published/{uuid}/"
        assert document["metadata-location"].startswith(own["prefix"])
        assert policies == [{"Effect": "Allow", "Action": "s3:GetObject", "Resource": [
            f"arn:aws:s3:::{BUCKET}/t/year=20%24/one file.parquet",
            f"arn:aws:s3:::{BUCKET}/published/{uuid}/*"]}]  # fmt: skip
        assert SECRET not in answer.text and KEY not in answer.text
        config = document["config"]
        assert config["s3.session-token"] and config["s3.endpoint"] == lake.endpoint
        client = boto3.client(
            "s3",
            endpoint_url=lake.endpoint,
            region_name=REGION,
            aws_access_key_id=config["s3.access-key-id"],
            aws_secret_access_key=config["s3.secret-access-key"],
            aws_session_token=config["s3.session-token"],
        )
        key = data["prefix"].removeprefix(f"s3://{BUCKET}/")
        assert client.get_object(Bucket=BUCKET, Key=key)["Body"].read() == parquet(7)
        given = await runtime.api.get(f"{BASE}/t/credentials", headers=by("ada"))
        assert given.json()["storage-credentials"] == document["storage-credentials"]
        assert given.headers["cache-control"] == "no-store"
        # Other tables have no files in a bucket, and clients that do not ask get none.
        people = await runtime.api.get(f"{BASE}/people", headers={**by("ada"), **ASKS})
        assert "storage-credentials" not in people.json()
        plain = await runtime.api.get(f"{BASE}/t", headers=by("ada"))
        assert "storage-credentials" not in plain.json()
        assert "s3.session-token" not in plain.json()["config"]
        for path, key, status in (("t", "wrong", 401), ("none", "ada", 404)):
            lost = await runtime.api.get(f"{BASE}/{path}/credentials", headers=by(key))
            assert lost.status_code == status
        signing = await runtime.api.post(
            f"{BASE}/t/sign", json={"method": "GET", "uri": "u"}, headers=by("ada")
        )
        assert signing.status_code == 403
