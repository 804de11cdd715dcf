from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy.engine import URL

from caraway_core.packages import git
from caraway_management.domain.platform import Platform
from tests.kit import management
from tests.kit.git_repositories import Repository
from tests.kit.management import Caller, Installation

MANIFEST = "version: v2\nkind: Spicepod\nname: {name}\n"


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    """A repository with a manifest at its top and in the folder `apps/shop`."""
    made = Repository(tmp_path / "git" / "data")
    made.commit(
        {
            "caraway.yaml": MANIFEST.format(name="top"),
            "apps/shop/caraway.yaml": MANIFEST.format(name="shop"),
        },
        "Add manifests",
    )
    return made


@pytest.fixture
def installation(prepared_url: URL, tmp_path: Path) -> Iterator[Installation]:
    """An installation that connects to repositories in a folder."""
    platform = Platform(git=(f"file://{tmp_path}/git/", "https://127.0.0.1:9/"))
    with management.installation(prepared_url, is_prepared=True, platform=platform) as made:
        yield made


@pytest.fixture
def owner(installation: Installation) -> Caller:
    """The owner of an organization."""
    user = installation.add_user()
    installation.add_org("acme", user)
    return installation.sign_in(user)


def _create(caller: Caller, name: str = "shop", **settings: Any) -> str:
    answer = caller.post("/v1/projects", {"name": name, **settings})
    assert answer.status_code == 201, answer.text
    return f"/v1/projects/{answer.json()['id']}"


def test_the_manifest_of_a_connected_project_comes_from_its_repository(
    owner: Caller, repository: Repository
) -> None:
    path = _create(owner)
    connected = owner.put(
        f"{path}/repository",
        {"repository": f"git:{repository.url}", "root_directory": "/apps/shop/"},
    )
    assert connected.status_code == 200, connected.text
    body = connected.json()
    assert body["config"]["manifest"] == MANIFEST.format(name="shop")
    assert body["production_branch"] == "trunk"
    assert body["repository"]["repository"] == repository.url
    assert body["repository"]["root_directory"] == "apps/shop"
    assert body["repository"]["commit_message"] == "Add manifests"
    assert len(body["repository"]["commit_sha"]) == 40
    refused = owner.put(path, {"manifest": MANIFEST.format(name="mine")})
    assert (refused.status_code, refused.json()["code"]) == (409, "github_connected")
    assert owner.put(path, {"description": "Orders"}).status_code == 200
    sha = repository.commit({"apps/shop/caraway.yaml": MANIFEST.format(name="new")}, "Rename")
    taken = owner.post(f"{path}/repository/synchronize").json()
    assert taken["config"]["manifest"] == MANIFEST.format(name="new")
    assert taken["repository"]["commit_sha"] == sha
    fork = owner.post(f"{path}/forks", {"name": "fork"}).json()
    assert fork["config"]["manifest"] == MANIFEST.format(name="new")
    assert fork["repository"] is None
    assert owner.delete(f"{path}/repository").status_code == 204
    mine = owner.put(path, {"manifest": MANIFEST.format(name="mine")})
    assert mine.json()["config"]["manifest"] == MANIFEST.format(name="mine")
    again = owner.post(f"{path}/repository/synchronize")
    assert (again.status_code, again.json()["code"]) == (409, "not_connected")


def test_a_deployment_takes_the_manifest_of_a_commit(
    installation: Installation, owner: Caller, repository: Repository
) -> None:
    path = _create(owner)
    owner.put(f"{path}/repository", {"repository": repository.url})
    first = repository.commit({"caraway.yaml": MANIFEST.format(name="one")}, "One")
    repository.commit({"caraway.yaml": MANIFEST.format(name="two")}, "Two")
    repository.commit({"caraway.yaml": MANIFEST.format(name="next")}, "Next", "next")
    project_id = int(path.rsplit("/", 1)[1])
    table: list[tuple[dict[str, str], str, str, str]] = [
        ({}, "two", "trunk", "Two"),
        ({"commit_sha": first}, "one", "trunk", "One"),
        ({"branch": "next"}, "next", "next", "Next"),
    ]
    for body, name, branch, message in table:
        made = owner.post(f"{path}/deployments", body)
        assert made.status_code == 202, made.text
        assert (made.json()["branch"], made.json()["commit_message"]) == (branch, message)
        assert len(made.json()["commit_sha"]) == 40
        installation.work()
        running = installation.deployer.running[project_id]
        assert running.manifest == MANIFEST.format(name=name)
    refusals: list[tuple[dict[str, str], int]] = [
        ({"branch": "none"}, 400), ({"branch": "-x"}, 400), ({"commit_sha": "abc"}, 400),
        ({"commit_sha": "0" * 40}, 400),
    ]  # fmt: skip
    for body, status in refusals:
        assert owner.post(f"{path}/deployments", body).status_code == status, body


def test_a_branch_is_chosen(owner: Caller, repository: Repository) -> None:
    path = _create(owner)
    repository.commit({"caraway.yaml": MANIFEST.format(name="next")}, branch="feature/next")
    connected = owner.put(
        f"{path}/repository",
        {"repository": repository.url, "production_branch": "feature/next"},
    )
    assert connected.json()["config"]["manifest"] == MANIFEST.format(name="next")
    assert connected.json()["production_branch"] == "feature/next"


def test_codes_of_repositories(
    owner: Caller, repository: Repository, tmp_path: Path, installation: Installation
) -> None:
    repository.commit(
        {
            "wrong/caraway.yaml": "version: v2\nkind: Spicepod\nname: 7\ndatasets: 3\n",
            "files/caraway.yaml": MANIFEST.format(name="a") + "views:\n  - ref: views/a.yaml\n",
            "binary/caraway.yaml": b"\xff\xfe",
            "large/caraway.yaml": "#" * (1024 * 1024 + 1),
            "folder/caraway.yaml/a": "x",
        }
    )
    (tmp_path / "outside").mkdir()
    Repository(tmp_path / "outside" / "data")
    url = repository.url
    table: list[tuple[dict[str, str], int, str]] = [
        ({"repository": "x"}, 400, "invalid_repository"),
        ({"repository": "ftp://127.0.0.1/a"}, 400, "invalid_repository"),
        ({"repository": "https://user:secret@127.0.0.1:9/a"}, 400, "invalid_repository"),
        ({"repository": f"{url}/../../outside/data"}, 400, "invalid_repository"),
        ({"repository": "file:///etc;ls"}, 400, "invalid_repository"),
        ({"repository": "ext::sh -c id"}, 400, "invalid_repository"),
        ({"repository": "--upload-pack=id"}, 400, "invalid_repository"),
        ({"repository": f"file://{tmp_path}/outside/data"}, 400, "github_not_connected"),
        ({"repository": "https://169.254.169.254/a"}, 400, "github_not_connected"),
        ({"repository": f"{url}-none"}, 404, "repository_not_found"),
        ({"repository": "https://127.0.0.1:9/a"}, 502, "github_unavailable"),
        ({"repository": url, "production_branch": "none"}, 400, "branch_not_found"),
        ({"repository": url, "root_directory": "../data"}, 400, "invalid_root_directory"),
        ({"repository": url, "root_directory": "a/-b"}, 400, "invalid_root_directory"),
        ({"repository": url, "root_directory": "none"}, 400, "spicepod_missing"),
        ({"repository": url, "root_directory": "folder"}, 400, "spicepod_missing"),
        ({"repository": url, "root_directory": "wrong"}, 400, "invalid_manifest"),
        ({"repository": url, "root_directory": "files"}, 400, "invalid_manifest"),
        ({"repository": url, "root_directory": "binary"}, 400, "invalid_manifest"),
        ({"repository": url, "root_directory": "large"}, 400, "invalid_manifest"),
    ]
    path = _create(owner)
    before = owner.get(path).json()
    for body, status, code in table:
        answer = owner.put(f"{path}/repository", body)
        assert (answer.status_code, answer.json().get("code")) == (status, code), answer.text
        assert "secret" not in answer.text
        assert "caraway-git-" not in answer.text
    assert owner.get(path).json() == before
    assert owner.put(f"{path}/repository", {"repository": url}).status_code == 200
    other = owner.put(f"{_create(owner, 'other')}/repository", {"repository": url})
    assert (other.status_code, other.json()["code"]) == (409, "root_directory_conflict")
    for branch in ("-x", "a..b", "a b", "a\n", "/a", "a.lock", "", "a~1"):
        answer = owner.put(f"{path}/repository", {"repository": url, "production_branch": branch})
        assert answer.status_code == 400, branch


def test_forks_of_connected_projects(owner: Caller, repository: Repository, tmp_path: Path) -> None:
    path = _create(owner)
    owner.put(f"{path}/repository", {"repository": repository.url})
    good = MANIFEST.format(name="a")
    table = [
        ({"caraway.yaml": good + "views:\n  - ref: views/a.yaml\n"}, 422,
         "fork_source_loads_repository_files"),
        ({"caraway.yaml": "version: v2\nkind: Spicepod\n"}, 422, "fork_source_spicepod_invalid"),
    ]  # fmt: skip
    for files, status, code in table:
        repository.commit(dict(files))
        answer = owner.post(f"{path}/forks", {"name": "fork"})
        assert (answer.status_code, answer.json()["code"]) == (status, code), answer.text
    repository.run("rm", "--quiet", "caraway.yaml")
    repository.commit({})
    answer = owner.post(f"{path}/forks", {"name": "fork"})
    assert (answer.status_code, answer.json()["code"]) == (422, "fork_source_has_no_spicepod")
    repository.folder.rename(tmp_path / "gone")
    answer = owner.post(f"{path}/forks", {"name": "fork"})
    assert (answer.status_code, answer.json()["code"]) == (
        502, "fork_source_repository_unreadable",
    )  # fmt: skip


def test_what_a_repository_holds_runs_nothing(
    owner: Caller, repository: Repository, tmp_path: Path
) -> None:
    marker = tmp_path / "ran"
    repository.commit(
        {
            ".gitattributes": "* filter=evil\n",
            ".gitmodules": f'[submodule "a"]\n\tpath = a\n\turl = ext::touch {marker}\n',
        }
    )
    path = _create(owner)
    answer = owner.put(f"{path}/repository", {"repository": repository.url})
    assert answer.status_code == 200, answer.text
    assert not marker.exists()


def test_a_repository_that_never_answers_is_left(
    owner: Caller, repository: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(git, "TIMEOUT_S", 0.0)
    path = _create(owner)
    answer = owner.put(f"{path}/repository", {"repository": repository.url})
    assert (answer.status_code, answer.json()["code"]) == (502, "github_unavailable")
