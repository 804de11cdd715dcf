from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from sqlalchemy import select

from caraway_management.domain import proxies
from caraway_management.store.tables import Activity
from tests.kit import management
from tests.kit.management import Installation
from tests.kit.served_management import listening


@pytest.fixture(params=["127.0.0.0/8", "10.0.0.0/8"], ids=["trusted", "untrusted"])
def served(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[Installation, bool]]:
    """A service behind a proxy of this machine, and whether it trusts it."""
    url = management.prepared_embedded_url(tmp_path)
    trusted = proxies.read_networks([request.param])
    with management.installation(url, is_prepared=True, trusted_proxies=trusted) as made:
        yield made, request.param.startswith("127.")


def test_lock_out_rates_and_activity_count_by_the_client_of_a_trusted_proxy(
    served: tuple[Installation, bool],
) -> None:
    made, is_trusted = served
    owner = made.add_user("ada")
    made.add_org("acme", owner)
    token = made.sign_in(owner).token
    with listening(made) as url, httpx.Client(base_url=url, trust_env=False) as client:

        def sign_in(address: str) -> int:
            body = {"username": "ada", "password": "wrong"}
            headers = {"x-forwarded-for": f"1.1.1.1, {address}"}
            return client.post("/v1/sessions", json=body, headers=headers).status_code

        def remaining(address: str) -> int:
            headers = {"x-forwarded-for": address}
            return int(client.get("/v1/orgs", headers=headers).headers["x-ratelimit-remaining"])

        statuses = [sign_in("198.51.100.1") for _ in range(6)]
        assert statuses == [401] * 5 + [429]
        assert sign_in("198.51.100.2") == (401 if is_trusted else 429)
        same = remaining("198.51.100.3") - remaining("198.51.100.4")
        assert same == (0 if is_trusted else 1)
        made_one = client.post(
            "/v1/projects", json={"name": "shop"},
            headers={"authorization": f"Bearer {token}", "x-forwarded-for": "198.51.100.5"},
        )  # fmt: skip
        assert made_one.status_code == 201
    [entry] = made.rows(select(Activity).where(Activity.action == "create_project"))
    assert entry.address == ("198.51.100.5" if is_trusted else "127.0.0.1")
