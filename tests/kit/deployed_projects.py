"""A project that is deployed by a deployer that runs nothing."""

import itertools
from dataclasses import dataclass

from caraway_management.domain.deployments import Code, Problem
from tests.kit.management import Caller, Installation

MANIFEST = "version: v1\nkind: Caraway\nname: shop\n"
_numbers = itertools.count(1)


@dataclass
class DeployedProject:
    """A project, and the owner of its organization."""

    caller: Caller
    id: int
    org: str

    @property
    def path(self) -> str:
        return f"/v1/projects/{self.id}"

    def deploy(self, **body: object) -> int:
        answer = self.caller.post(f"{self.path}/deployments", body)
        assert answer.status_code == 202, answer.text
        id_: int = answer.json()["id"]
        return id_

    def deployment(self, id_: int) -> dict[str, object]:
        found: dict[str, object] = self.caller.get(f"{self.path}/deployments/{id_}").json()
        return found

    def state(self, id_: int) -> tuple[object, object]:
        found = self.deployment(id_)
        return found["status"], found["error_code"]


def new_project(installation: Installation, **settings: object) -> DeployedProject:
    """Create a project with a manifest in an organization of its own."""
    user, org = installation.add_user(), f"org-{next(_numbers)}"
    installation.add_org(org, user)
    caller = installation.sign_in(user)
    made = caller.post("/v1/projects", {"name": "shop", "manifest": MANIFEST, **settings})
    assert made.status_code == 201, made.text
    return DeployedProject(caller, made.json()["id"], org)


def shortage(code: Code = Code.INSUFFICIENT_CPU) -> Problem:
    return Problem(code, "there is too little")
