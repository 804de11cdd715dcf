import json
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from caraway import Management
from caraway_management.domain.deployments import Code, Phase, Problem
from tests.client.cli.conftest import Command
from tests.kit.management import Installation

MANIFEST = "version: v1\nkind: Caraway\nname: sales\n"


@pytest.fixture
def at_work(installation: Installation) -> Iterator[None]:
    """The background work of the service, in a thread."""
    stopping = threading.Event()

    def work() -> None:
        while not stopping.wait(0.02):
            installation.work()

    thread = threading.Thread(target=work)
    thread.start()
    yield
    stopping.set()
    thread.join()


@pytest.fixture
def manifest(folder: Path) -> Path:
    """The manifest of the current directory."""
    file = folder / "caraway.yaml"
    file.write_text(MANIFEST)
    return file


@pytest.mark.usefixtures("at_work", "manifest")
def test_the_first_deployment_makes_the_project_and_links_the_directory(
    signed_in: Command, management: Management, folder: Path
) -> None:
    deployed = signed_in("deploy", "--wait", "--yes")

    assert (deployed.exit_code, deployed.stdout) == (0, "sales runs at http://127.0.0.1:8001\n")
    assert "created the project sales" in deployed.stderr
    assert "succeeded" in deployed.stderr
    assert management.find_project("sales")["config"]["manifest"] == MANIFEST
    link = json.loads((folder / ".caraway" / "project.json").read_text())
    assert (link["org"], link["project"], link["project_id"]) == ("acme", "sales", 1)


@pytest.mark.usefixtures("at_work")
def test_a_linked_directory_is_deployed_again_without_a_question(
    signed_in: Command, management: Management, manifest: Path
) -> None:
    signed_in("deploy", "--wait", "--yes")
    manifest.write_text(MANIFEST + "runtime: {}\n")

    assert signed_in("deploy", "--wait").exit_code == 0

    assert len(management.list_deployments(1)["deployments"]) == 2
    assert management.get_project(1)["config"]["manifest"] == manifest.read_text()


@pytest.mark.usefixtures("manifest")
def test_no_project_is_made_if_nobody_can_be_asked(
    signed_in: Command, management: Management, folder: Path
) -> None:
    refused = signed_in("deploy")

    assert refused.exit_code == 1
    assert "There is no project 'sales'" in refused.stderr and "--yes" in refused.stderr
    assert management.list_projects()["projects"] == []
    assert not (folder / ".caraway").exists()


@pytest.mark.usefixtures("at_work", "manifest")
def test_the_reason_of_a_failure_is_shown(signed_in: Command, installation: Installation) -> None:
    installation.deployer.problem = Problem(Code.UNABLE_TO_START, "the port is taken")

    failed = signed_in("deploy", "--wait", "--yes")

    assert failed.exit_code == 1
    assert "failed: the port is taken (unable_to_start)" in failed.stderr
    assert "caraway deployments logs 1" in failed.stderr


@pytest.mark.usefixtures("at_work", "manifest")
def test_a_deployment_that_takes_too_long_is_left_to_go_on(
    signed_in: Command, installation: Installation
) -> None:
    installation.deployer.phase = Phase.STARTING

    late = signed_in("deploy", "--wait", "--timeout", "0", "--yes")

    assert late.exit_code == 1
    assert "has not ended after 0 s" in late.stderr


@pytest.mark.usefixtures("manifest")
def test_without_wait_the_deployment_is_named(signed_in: Command) -> None:
    deployed = signed_in("deploy", "--yes")

    assert deployed.stdout == "follow it with: caraway deployments show 1 --wait\n"
    assert signed_in("deploy", "--yes").exit_code == 1  # One is under way.


@pytest.mark.usefixtures("manifest")
def test_json_is_the_deployment(signed_in: Command, management: Management) -> None:
    shown = json.loads(signed_in("deploy", "--yes", "--json").stdout)

    assert shown == management.get_deployment(1, shown["id"])


def test_a_manifest_that_the_service_refuses_is_not_deployed(
    signed_in: Command, management: Management, folder: Path
) -> None:
    (folder / "caraway.yaml").write_text(MANIFEST + "datasets: 7\n")

    refused = signed_in("deploy", "--yes")

    assert refused.exit_code == 1
    assert "datasets" in refused.stderr
    assert management.list_deployments(1)["deployments"] == []


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (None, "there is no manifest"),
        (b"\xff", "not UTF-8"),
        (b"a: [", "not valid YAML"),
        (b"version: v1\n", "has no name"),
        (b"x" * 1_000_001, "more than 1,000,000 bytes"),
    ],
)
def test_a_manifest_that_cannot_be_read_is_named(
    signed_in: Command, folder: Path, content: bytes | None, words: str
) -> None:
    if content is not None:
        (folder / "caraway.yaml").write_bytes(content)

    refused = signed_in("deploy", "--yes")

    assert refused.exit_code == 1
    assert words in refused.stderr


@pytest.mark.usefixtures("at_work", "manifest")
def test_deployments_are_listed_shown_and_rolled_back(
    signed_in: Command, management: Management
) -> None:
    signed_in("deploy", "--wait", "--yes")

    header, row = signed_in("deployments", "list").stdout.splitlines()
    assert header.split()[:2] == ["id", "status"] and row.split()[:2] == ["1", "succeeded"]
    assert "rollback_of" not in signed_in("deployments", "show", "1").stdout
    logs = signed_in("deployments", "logs", "1").stdout
    assert "info deployment succeeded" in logs

    again = signed_in("deployments", "rollback", "1", "--wait")

    assert again.stdout == "deployment 2 takes what 1 had\n"
    assert management.get_deployment(1, 2)["rollback_of"] == 1
