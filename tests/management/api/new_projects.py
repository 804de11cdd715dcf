"""Creates projects over the API."""

from tests.kit.management import Caller


def new_project(caller: Caller, name: str = "shop") -> int:
    made = caller.post("/v1/projects", {"name": name})
    assert made.status_code == 201, made.text
    id_: int = made.json()["id"]
    return id_
