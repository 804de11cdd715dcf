"""The states of projects, by random steps that a model follows."""

from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, invariant, rule
from sqlalchemy import select

from caraway_management.domain.platform import Platform
from caraway_management.store.tables import Deployment, Project
from tests.kit import management
from tests.kit.management import Caller

MANIFEST = "version: v2\nkind: Spicepod\nname: shop\n"
ORGS = ("acme", "umbrella")
NAMES = ("shop", "SHOP")


@dataclass
class Model:
    """The expected state of a project."""

    id: int
    org: str
    name: str
    description: str = ""
    is_paused: bool = False
    is_deleted: bool = False
    forked_from: int | None = None
    has_manifest: bool = False
    deployments: list[int] = field(default_factory=list)


class Projects(RuleBasedStateMachine):
    """Two organizations of one owner, and what happens to their projects."""

    projects = Bundle("projects")

    def __init__(self) -> None:
        super().__init__()
        self._folder = TemporaryDirectory()
        self._serving = management.installation(
            management.embedded_url(Path(self._folder.name)), platform=Platform()
        )
        self.installation = self._serving.__enter__()
        user = self.installation.add_user()
        for org in ORGS:
            self.installation.add_org(org, user)
        self.caller: Caller = self.installation.sign_in(user)
        self.models: dict[int, Model] = {}

    def teardown(self) -> None:
        self._serving.__exit__(None, None, None)
        self._folder.cleanup()

    @rule(
        target=projects,
        org=st.sampled_from(ORGS),
        name=st.sampled_from(NAMES),
        description=st.sampled_from(["a", "b"]),
        has_manifest=st.booleans(),
    )
    def create(self, org: str, name: str, description: str, has_manifest: bool) -> int:
        found = self._named(org, name)
        body: dict[str, Any] = {"name": name, "description": description}
        if has_manifest:
            body["manifest"] = MANIFEST
        answer = self.caller.post("/v1/projects", body, headers={"x-org-name": org})
        if found is not None and not found.is_deleted:
            assert answer.status_code == 409
            return found.id
        assert answer.status_code == 201, answer.text
        id_: int = answer.json()["id"]
        if found is None:
            assert id_ not in self.models
            found = self.models[id_] = Model(id_, org, name)
        # A deleted one is revived, with its id and its name.
        assert id_ == found.id
        found.description = description
        found.has_manifest |= has_manifest
        found.is_deleted = found.is_paused = False
        return id_

    @rule(id_=projects, is_paused_before=st.booleans())
    def delete(self, id_: int, is_paused_before: bool) -> None:
        model = self.models[id_]
        if is_paused_before:
            self.pause(id_)
        status = self._send(model, "DELETE", "").status_code
        assert status == (404 if model.is_deleted else 204)
        model.is_deleted = True

    @rule(id_=projects)
    def delete_and_revive(self, id_: int) -> None:
        model = self.models[id_]
        self.delete(id_, True)
        self.create(model.org, model.name.upper(), "e", has_manifest=False)

    @rule(id_=projects)
    def pause(self, id_: int) -> None:
        model = self.models[id_]
        status = self._send(model, "POST", "/pause").status_code
        assert status == self._expected(model, 409 if model.is_paused else 200)
        model.is_paused |= status == 200

    @rule(id_=projects)
    def resume(self, id_: int) -> None:
        model = self.models[id_]
        answer = self._send(model, "POST", "/resume")
        assert answer.status_code == self._expected(model, 200 if model.is_paused else 409)
        if answer.status_code == 200:
            model.is_paused = False
            deployment = answer.json()["deployment_id"]
            assert (deployment is not None) == model.has_manifest
            if deployment is not None:
                model.deployments.append(deployment)

    @rule(id_=projects, description=st.sampled_from(["c", "d"]))
    def change(self, id_: int, description: str) -> None:
        model = self.models[id_]
        answer = self._send(model, "PUT", "", {"description": description})
        assert answer.status_code == self._expected(model, 200)
        if answer.status_code == 200:
            model.description = description

    @rule(id_=projects)
    def deploy(self, id_: int) -> None:
        model = self.models[id_]
        answer = self._send(model, "POST", "/deployments", {})
        refused = model.is_paused or not model.has_manifest
        assert answer.status_code == self._expected(model, 400 if refused else 202)
        if answer.status_code == 202:
            model.deployments.append(answer.json()["id"])
        if model.is_paused and model.has_manifest and not model.is_deleted:
            assert answer.json()["code"] == "spicepod_paused"

    @rule(target=projects, id_=projects, name=st.sampled_from(NAMES))
    def fork(self, id_: int, name: str) -> int:
        source = self.models[id_]
        answer = self._send(source, "POST", "/forks", {"name": name})
        if not source.has_manifest:
            status = 422
        else:
            status = 201 if self._named(source.org, name) is None else 409
        assert answer.status_code == self._expected(source, status), answer.text
        if answer.status_code != 201:
            return id_
        body = answer.json()
        self.models[body["id"]] = Model(
            body["id"], source.org, name, source.description, forked_from=id_, has_manifest=True,
            deployments=[body["deployment_id"]],
        )  # fmt: skip
        return int(body["id"])

    @rule(target=projects, id_=consumes(projects))
    def transfer(self, id_: int) -> int:
        model = self.models[id_]
        other = next(each for each in ORGS if each != model.org)
        answer = self._send(model, "POST", "/transfer", {"org": other, "confirm": model.name})
        taken = self._named(other, model.name) is not None
        assert answer.status_code == self._expected(model, 409 if taken else 200)
        if answer.status_code == 200:
            model.org, model.forked_from = other, None
        return id_

    @invariant()
    def the_service_shows_what_the_model_says(self) -> None:
        # So that no deployment is under way at the next step.
        self.installation.work()
        for org in ORGS:
            listed = self.caller.get("/v1/projects?limit=100", headers={"x-org-name": org})
            shown = {each["id"]: each for each in listed.json()["projects"]}
            expected = {
                each.id: each
                for each in self.models.values()
                if each.org == org and not each.is_deleted
            }
            assert shown.keys() == expected.keys()
            for id_, model in expected.items():
                one = shown[id_]
                assert (one["name"], one["description"], one["forked_from"]) == (
                    model.name, model.description, model.forked_from,
                )  # fmt: skip
                assert (one["paused_at"] is not None) == model.is_paused
        rows = {each.id: each for each in self.installation.rows(select(Project))}
        assert {id_ for id_, each in rows.items() if each.deleted_at} == {
            each.id for each in self.models.values() if each.is_deleted
        }
        deployments = self.installation.rows(select(Deployment))
        assert sorted(each.id for each in deployments) == sorted(
            id_ for model in self.models.values() for id_ in model.deployments
        )
        running = set(self.installation.deployer.running)
        assert not running & {
            each.id for each in self.models.values() if each.is_deleted or each.is_paused
        }

    def _send(self, model: Model, method: str, path: str, body: Any = None) -> Any:
        return self.caller.send(
            method, f"/v1/projects/{model.id}{path}", json=body,
            headers={"x-org-name": model.org},
        )  # fmt: skip

    def _expected(self, model: Model, status: int) -> int:
        return 404 if model.is_deleted else status

    def _named(self, org: str, name: str) -> Model | None:
        return next(
            (
                each
                for each in self.models.values()
                if each.org == org and each.name.lower() == name.lower()
            ),
            None,
        )


TestProjects = Projects.TestCase
TestProjects.settings = settings(
    max_examples=5, stateful_step_count=12, deadline=None,
    suppress_health_check=list(HealthCheck),
)  # fmt: skip
