import json
from pathlib import Path

from caraway import Management
from tests.client.cli.conftest import Command
from tests.client.runtime import Answer, FakeRuntime


def test_a_project_is_created_listed_and_deleted(signed_in: Command) -> None:
    created = signed_in("projects", "create", "sales", "--description", "what we sell")
    assert (created.exit_code, created.stdout) == (0, "created sales (id 1)\n")

    header, row = signed_in("projects", "list").stdout.splitlines()
    assert header.split()[:3] == ["id", "name", "description"]
    assert row.split()[:5] == ["1", "sales", "what", "we", "sell"]

    assert signed_in("projects", "delete", "SALES", "--yes").stdout == "deleted sales\n"
    assert json.loads(signed_in("projects", "list", "--json").stdout) == []


def test_a_project_is_shown_by_name_and_by_id(signed_in: Command, management: Management) -> None:
    made = management.create_project(name="sales")

    for named in ("sales", str(made["id"])):
        assert json.loads(signed_in("projects", "show", named, "--json").stdout) == made
    lines = [line.split() for line in signed_in("projects", "show", "sales").stdout.splitlines()]
    assert ["name", "sales"] in lines and ["config.replicas", "1"] in lines
    assert not any("manifest" in line[0] or "spicepod" in line[0] for line in lines)


def test_nothing_is_deleted_without_yes_if_nobody_can_be_asked(
    signed_in: Command, management: Management
) -> None:
    management.create_project(name="sales")

    refused = signed_in("projects", "delete", "sales")

    assert refused.exit_code == 1
    assert "Pass --yes" in refused.stderr
    assert management.find_project("sales")


def test_a_directory_is_linked_to_a_project(
    signed_in: Command, management: Management, folder: Path, url: str
) -> None:
    made = management.create_project(name="sales")

    assert signed_in("projects", "link", "sales").exit_code == 0

    assert json.loads((folder / ".caraway" / "project.json").read_text()) == {
        "management": url,
        "org": "acme",
        "project_id": made["id"],
        "project": "sales",
    }
    assert json.loads(signed_in("projects", "show", "--json").stdout) == made


def test_a_link_to_another_service_gets_no_request(
    signed_in: Command, management: Management, folder: Path
) -> None:
    link = {"management": "http://evil.example", "org": "x", "project_id": 1, "project": "p"}
    (folder / ".caraway").mkdir()
    (folder / ".caraway" / "project.json").write_text(json.dumps(link))

    refused = signed_in("projects", "show")

    assert refused.exit_code == 1
    assert "linked to a project of http://evil.example" in refused.stderr


def test_without_a_link_a_project_must_be_named(signed_in: Command) -> None:
    refused = signed_in("projects", "show")

    assert refused.exit_code == 1
    assert "caraway projects link NAME" in refused.stderr


def test_a_refusal_names_the_field(signed_in: Command) -> None:
    refused = signed_in("projects", "create", "x")

    assert refused.exit_code == 1
    assert refused.stderr == "error: name: use 4 to 38 letters, digits or '-'\n"


def test_a_text_of_somebody_else_does_not_command_the_terminal(
    signed_in: Command, runtime: FakeRuntime
) -> None:
    project = {"id": 1, "name": "\x1b]0;evil\x07", "config": {}}
    runtime.answers("GET /v1/projects", Answer(body=json.dumps({"projects": [project]}).encode()))
    runtime.answers("GET /v1/projects/1", Answer(body=json.dumps(project).encode()))

    for arguments in (("list",), ("show", "1")):
        shown = signed_in("projects", *arguments, "--management", runtime.endpoint).stdout
        assert "evil" in shown
        assert "\x1b" not in shown and "\x07" not in shown


def test_a_project_is_paused_and_resumed(signed_in: Command, management: Management) -> None:
    made = management.create_project(name="sales")

    assert signed_in("projects", "pause", "sales").stdout == "paused sales\n"
    assert management.get_project(made["id"])["paused_at"] is not None
    assert signed_in("projects", "resume", "sales").stdout == "resumed sales\n"
    assert management.get_project(made["id"])["paused_at"] is None
