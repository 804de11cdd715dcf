"""Packages over HTTP: what a zip holds, and which repositories are refused."""

import asyncio
import io
import os
import zipfile
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from caraway_core import manifest as manifests
from caraway_core.errors import DeadlineError
from caraway_core.packages import collecting, folders, repositories, sources
from caraway_core.packages.making import PackageMaker
from tests.kit import git_repositories
from tests.kit.git_repositories import TOKEN, GitServer, Repository
from tests.kit.runtime import Running, running
from tests.kit.shared_runtime import entered

TOP = "version: v2\nkind: Spicepod\nname: shop\n"
GOOD: dict[str, str | bytes] = {
    "pods/shop/caraway.yaml": TOP
    + "dependencies: [spices/common, acme/base]\n"
    + "datasets: [{ref: datasets/orders}]\n"
    + "views: [{name: v, sql_ref: sql/v.sql}, {ref: views/w.yaml}]\n",
    "pods/shop/datasets/orders/dataset.yaml": "from: file:orders.csv\nname: orders\n",
    "pods/shop/sql/v.sql": "SELECT 1 AS a",
    "pods/shop/views/w.yaml": "name: w\nsql_ref: w.sql\n",
    "pods/shop/views/w.sql": "SELECT 2 AS a",
    "pods/shop/spices/common/spicepod.yml": TOP + "dependencies: [acme/base]\n",
    "pods/shop/spicepods/acme/base/caraway.yaml": TOP,
    "pods/shop/orders.csv": "id\n1\n",
    "pods/shop/secret.env": "PASSWORD=hunter2",
    "data/large.bin": os.urandom(4 * 1024 * 1024 + 1),
}


class Host:
    """A host of git repositories, and the runtime that reads them."""

    def __init__(self, folder: Path, server: GitServer) -> None:
        self.folder = folder
        self.server = server
        self.runtime: Running
        self.shop = Repository(folder / "acme" / "shop.git")
        self.commit = self.shop.commit(GOOD)
        Repository(folder / "private" / "shop.git").commit({"caraway.yaml": TOP})

    async def post(self, body: Any, **headers: str) -> httpx.Response:
        return await self.runtime.api.post("/v1/packages/generate", json=body, headers=headers)

    async def generate(
        self, files: dict[str, str | bytes], path: str = "caraway.yaml"
    ) -> httpx.Response:
        """Commit files to a new repository, and ask for a package of them."""
        count = len(list((self.folder / "new").glob("*")))
        sha = Repository(self.folder / "new" / f"r{count}.git").commit(files)
        return await self.post({"from": f"git:new/r{count}/{sha}/{path}"})


@asynccontextmanager
async def _serving(folder: Path) -> AsyncIterator[Host]:
    with git_repositories.serving(folder / "git") as server:
        host = Host(folder / "git", server)
        manifest = f"runtime: {{packages: {{git_url: '{server.url}'}}}}"
        async with running(folder, manifest) as host.runtime:
            yield host


@pytest.fixture(scope="module")
def host(
    loop_of_module: asyncio.Runner, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Host]:
    """Serve repositories and a runtime until the module ends."""
    folder = tmp_path_factory.mktemp("packages")
    with entered(loop_of_module, lambda: _serving(folder)) as made:
        yield made


def files_of(answer: httpx.Response) -> dict[str, bytes]:
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"] == "application/zip"
    archive = zipfile.ZipFile(io.BytesIO(answer.content))
    return {name: archive.read(name) for name in archive.namelist()}


async def test_a_package_holds_what_its_manifest_refers_to_and_nothing_else(host: Host) -> None:
    before = host.server.sent_bytes
    answer = await host.post({"from": f"git:acme/shop/{host.commit}/pods/shop/caraway.yaml"})
    files = files_of(answer)
    assert next(iter(files)) == "caraway.yaml"
    wanted = {name for name in GOOD if name.startswith("pods/shop/")}
    wanted -= {"pods/shop/orders.csv", "pods/shop/secret.env"}
    assert {f"pods/shop/{name}" for name in files} == wanted
    assert files["sql/v.sql"] == b"SELECT 1 AS a"
    assert "shop.zip" in answer.headers["content-disposition"]
    # Contents that were not requested do not leave the host.
    assert host.server.sent_bytes - before < 1024 * 1024
    folder = await host.post({"from": f"github:acme/shop/{host.commit}/pods/shop", "params": {}})
    assert folder.content == answer.content


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ([], "must be a JSON object"),
        ({}, "'from' must be a string"),
        ({"from": 7}, "'from' must be a string"),
        ({"from": "x"}, "must have the form git:"),
        ({"from": "git:acme/shop"}, "must have four parts"),
        ({"from": "git:acme/shop/SHA/"}, "must have four parts"),
        ({"from": "git:acme/shop/trunk/caraway.yaml"}, "must be its whole hash"),
        ({"from": "git:acme/shop/abc123/caraway.yaml"}, "must be its whole hash"),
        ({"from": "git:../shop/SHA/caraway.yaml"}, "the organization has characters"),
        ({"from": "git:acme/--upload-pack=id/SHA/caraway.yaml"}, "the repository has characters"),
        ({"from": "git:acme/shop@evil.example/SHA/caraway.yaml"}, "the repository has characters"),
        ({"from": "git:acme/shop/SHA/../../etc/passwd"}, "in the folder of the package"),
        ({"from": "git:acme/shop/SHA//etc/passwd"}, "in the folder of the package"),
        ({"from": "git:acme/shop/SHA/-x"}, "characters that paths"),
        ({"from": "git:acme/shop/SHA/a\nb"}, "characters that paths"),
        ({"from": "git:acme/shop/SHA/none.yaml"}, "no manifest 'none.yaml'"),
        ({"from": "git:acme/shop/SHA/data"}, "no manifest 'data'"),
        ({"from": "git:acme/shop/SHA/pods/shop/orders.csv"}, "mapping"),
        ({"from": "git:acme/shop/SHA/pods/shop/views/w.yaml"}, "is no manifest"),
        ({"from": "git:acme/shop/SHA/data/large.bin"}, "has more than"),
        ({"from": f"git:acme/shop/{'0' * 40}/caraway.yaml"}, "has no commit 0000"),
        ({"from": "git:acme/none/SHA/caraway.yaml"}, "does not exist or may not be read"),
        ({"from": "git:moved/shop/SHA/caraway.yaml"}, "redirects to another place"),
        ({"from": "git:a/b/SHA/c", "params": 1}, "'params' must be an object"),
        ({"from": "git:a/b/SHA/c", "params": {"git_token": 1}}, "must be one string"),
        ({"from": "git:a/b/SHA/c", "params": {"git_tokn": "x"}}, "no param 'git_tokn'"),
        ({"from": "git:a/b/SHA/c", "params": {"git_token": "a\r\nb: c"}}, "printable characters"),
        ({"from": "git:a/b/SHA/c", "host": "evil.example"}, "no field 'host'"),
    ],
)
async def test_what_names_no_package_is_refused(host: Host, body: Any, words: str) -> None:
    if isinstance(body, dict) and isinstance(body.get("from"), str):
        body = {**body, "from": body["from"].replace("SHA", host.commit)}
    answer = await host.post(body)
    assert answer.status_code == 400, answer.text
    assert words in answer.json()["error"]
    assert str(host.folder) not in answer.text
    assert "caraway-git-" not in answer.text


async def test_a_redirect_is_not_followed(host: Host) -> None:
    host.server.paths.clear()
    await host.post({"from": f"git:moved/shop/{host.commit}/caraway.yaml"})
    assert [path.split("?")[0] for path in host.server.paths] == ["/moved/shop.git/info/refs"]


@pytest.mark.parametrize(
    ("item", "words"),
    [
        ("dependencies: [none/here]", "dependencies[0]: the package has no 'none/here'"),
        ("dependencies: [../other]", "in the folder of the package"),
        ("dependencies: [3]", "must be the path"),
        ("datasets: [{ref: ../../etc}]", "in the folder of the package"),
        ("datasets: [{ref: /etc/passwd}]", "in the folder of the package"),
        ("datasets: [{ref: none}]", "datasets[0].ref: the package has no 'none'"),
        ("datasets: [{ref: link.yaml}]", "is a symbolic link"),
        ("datasets: [{ref: folder_link/dataset.yaml}]", "has no 'folder_link/dataset.yaml'"),
        ("datasets: [{ref: module}]", "is a submodule"),
        ("views: [{name: a, sql_ref: 'C:\\x'}]", "characters that paths"),
        ("datasets: [{ref: bad.yaml}]", "is not valid YAML"),
        ("datasets: [{ref: binary.yaml}]", "is not UTF-8"),
        ("a: &a [1,1,1,1,1,1]\nb: &b [*a,*a,*a,*a,*a,*a,*a]\n"
         "c: &c [*b,*b,*b,*b,*b,*b,*b,*b]\nd: &d [*c,*c,*c,*c,*c,*c,*c,*c]\n"
         "e: &e [*d,*d,*d,*d,*d,*d,*d,*d]\nf: [*e,*e,*e,*e,*e,*e,*e,*e,*e,*e,*e]", "aliases"),
    ],
)  # fmt: skip
async def test_a_package_has_only_plain_files_of_its_folder(
    host: Host, item: str, words: str
) -> None:
    name = f"r{abs(hash(item))}"
    repository = Repository(host.folder / "odd" / f"{name}.git")
    (repository.folder / "link.yaml").symlink_to("/etc/passwd")
    (repository.folder / "real").mkdir()
    (repository.folder / "real" / "dataset.yaml").write_text("from: 'memory:a'\nname: a\n")
    (repository.folder / "folder_link").symlink_to("real")
    sha = host.commit
    repository.run("update-index", "--add", "--cacheinfo", f"160000,{sha},module")
    (repository.folder / "module").mkdir()
    sha = repository.commit(
        {"caraway.yaml": TOP + item, "bad.yaml": "a: [", "binary.yaml": b"\xff\xfe\x00"}
    )
    answer = await host.post({"from": f"git:odd/{name}/{sha}/caraway.yaml"})
    assert answer.status_code == 400, answer.text
    assert words in answer.json()["error"]
    assert "root:" not in answer.text


async def test_circles_and_files_named_twice_are_read_once(host: Host) -> None:
    answer = await host.generate(
        {
            "caraway.yaml": TOP + "dependencies: [a]\nviews: [{ref: v.yaml}, {ref: ./v.yaml}]\n",
            "a/caraway.yaml": TOP + "dependencies: [../caraway.yaml, '.']\n",
            "v.yaml": "name: v\nsql: SELECT 1\n",
        }
    )
    assert set(files_of(answer)) == {"caraway.yaml", "a/caraway.yaml", "v.yaml"}


def other(host: Host, name: str, files: dict[str, str | bytes], org: str = "acme") -> str:
    """Commit files to another repository, and return the name of its commit in dependencies."""
    sha = Repository(host.folder / org / f"{name}.git").commit(files)
    return f"{org}/{name}/{sha}"


async def test_dependencies_in_other_repositories_of_the_host(host: Host, tmp_path: Path) -> None:
    deep = other(host, "deep", {"caraway.yml": TOP + "views: [{name: d, sql: SELECT 3}]\n"})
    base = other(
        host,
        "base",
        {
            "a/spicepod.yaml": TOP
            + f"dependencies: ['git:{deep}/caraway.yml', spices/near]\n"
            + "views: [{ref: views/w.yaml}]\n",
            "a/views/w.yaml": "name: w\nsql_ref: w.sql\n",
            "a/views/w.sql": "SELECT 2",
            "a/spices/near/caraway.yaml": TOP + f"dependencies: ['github:{deep}/caraway.yml']\n",
        },
    )
    host.server.paths.clear()
    pod = f"{TOP}dependencies: ['git:{base}/a']\nviews: [{{name: v, sql: SELECT 1}}]\n"
    answer = await host.generate({"pod/caraway.yaml": pod}, "pod")
    files = files_of(answer)
    assert set(files) == {
        "caraway.yaml",
        f"spicepods/{base}/a/spicepod.yaml",
        f"spicepods/{base}/a/views/w.yaml",
        f"spicepods/{base}/a/views/w.sql",
        f"spicepods/{base}/a/spices/near/caraway.yaml",
        f"spicepods/{deep}/caraway.yml",
    }
    fetched = [path for path in host.server.paths if path.startswith("/acme/deep.git/info/refs")]
    assert len(fetched) == 2, "the commit, and the contents of one file"
    # The unpacked files load, and are a package again without the host.
    for name, content in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(content)
    assert {view.name for view in manifests.load(tmp_path).views} == {"v", "w", "d"}
    again = await folders.of_folder(tmp_path, "https://nowhere.invalid", None)
    assert again.files == files


async def test_other_repositories_that_cannot_be_read(
    host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    hidden = other(host, "base", {"caraway.yaml": TOP}, org="private")
    one = other(host, "one", {"caraway.yaml": TOP})
    two = other(host, "two", {"caraway.yaml": f"{TOP}dependencies: ['git:{one}/caraway.yaml']"})
    outside = {"a/caraway.yaml": f"{TOP}dependencies: [../b]", "b/caraway.yaml": TOP}
    for dependency, words in (
        (f"git:{hidden}/caraway.yaml", "'private/base' does not exist or may not be read"),
        (f"git:{one}/none", "there is no manifest 'none'"),
        (f"git:acme/one/{'1' * 40}/caraway.yaml", "has no commit 1111"),
        ("git:acme/one/trunk/caraway.yaml", "dependencies[0]: the commit must be its whole hash"),
        ("git:acme/one/../caraway.yaml", "dependencies[0]"),
        ("github:x", "dependencies[0] must have four parts"),
        (f"git:{other(host, 'three', {**outside})}/a", "in the folder of the package"),
        ("git:moved/shop/" + "1" * 40 + "/caraway.yaml", "redirects to another place"),
    ):
        answer = await host.generate({"caraway.yaml": f"{TOP}dependencies: ['{dependency}']"})
        assert (answer.status_code, words in answer.json()["error"]) == (400, True), answer.text
    sha = Repository(host.folder / "private" / "top.git").commit(
        {"caraway.yaml": f"{TOP}dependencies: ['git:{hidden}/caraway.yaml']"}
    )
    body = {"from": f"git:private/top/{sha}/caraway.yaml", "params": {"git_token": TOKEN}}
    assert len(files_of(await host.post(body))) == 2
    monkeypatch.setattr(repositories, "MOST_REPOSITORIES", 2)
    answer = await host.generate({"caraway.yaml": f"{TOP}dependencies: ['git:{two}/caraway.yaml']"})
    assert "in more than 2 repositories" in answer.text
    monkeypatch.setattr(collecting, "MOST_DEPTH", 2)
    answer = await host.generate(
        {"p/" * n + "caraway.yaml": f"{TOP}dependencies: [p]" for n in range(5)}
    )
    assert (answer.status_code, "nested more than 2 deep" in answer.text) == (400, True)


async def test_packages_with_too_many_files_or_bytes_are_refused(
    host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = [f"v{n}.sql" for n in range(6)]
    views = ", ".join(f"{{name: v, sql_ref: {name}}}" for name in names)
    files: dict[str, str | bytes] = {
        "caraway.yaml": f"{TOP}views: [{views}]", **dict.fromkeys(names, "-" * 1000)
    }  # fmt: skip
    assert len(files_of(await host.generate(files))) == 7
    monkeypatch.setattr(collecting, "MOST_FILES", 6)
    answer = await host.generate(files)
    assert (answer.status_code, "more than 6 files" in answer.text) == (400, True)
    monkeypatch.undo()
    monkeypatch.setattr(collecting, "MOST_BYTES", 5_000)
    answer = await host.generate(files)
    assert (answer.status_code, "has more than" in answer.text) == (400, True)


async def test_a_private_repository_needs_the_right_token(
    host: Host, caplog: pytest.LogCaptureFixture
) -> None:
    sha = Repository(host.folder / "private" / "data.git").commit({"caraway.yaml": TOP})
    source = {"from": f"git:private/data/{sha}/caraway.yaml"}
    refused = [await host.post({**source, "params": each}) for each in ({}, {"git_token": "wrong"})]
    for answer in refused:
        assert answer.status_code == 400, answer.text
        assert "may not be read" in answer.json()["error"]
        assert "wrong" not in answer.text
    with caplog.at_level("DEBUG"):
        answer = await host.post({**source, "params": {"git_token": TOKEN}})
    assert set(files_of(answer)) == {"caraway.yaml"}
    assert TOKEN not in caplog.text
    task = (await host.runtime.sql("SELECT * FROM runtime.task_history")).text
    assert TOKEN not in task


async def test_hosts_that_are_away_or_slow_are_left(host: Host) -> None:
    away = await host.post({"from": f"git:away/shop/{host.commit}/caraway.yaml"})
    assert away.status_code == 503, away.text
    assert "its host does not answer" in away.json()["error"]
    assert int(away.headers["retry-after"]) > 0
    source = sources.parse(f"git:slow/shop/{host.commit}/caraway.yaml")
    with pytest.raises(DeadlineError, match="'slow/shop' could not be read within"):
        await PackageMaker(timeout_s=0.2).zipped(source, host.server.url, None)


async def test_many_requests_at_once_are_limited(host: Host) -> None:
    body = {"from": f"git:slow/shop/{host.commit}/caraway.yaml"}
    asked = [asyncio.create_task(host.post(body)) for _ in range(17)]
    done, waiting = await asyncio.wait(asked, return_when=asyncio.FIRST_COMPLETED)
    answer = done.pop().result()
    assert (answer.status_code, "too many packages" in answer.text) == (503, True)
    for each in waiting:
        each.cancel()
    await asyncio.wait(waiting)
    answer = await host.post({"from": f"git:acme/shop/{host.commit}/pods/shop"})
    assert answer.status_code == 200


async def test_a_machine_without_git_says_so(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/none")
    answer = await host.post({"from": f"git:acme/shop/{host.commit}/caraway.yaml"})
    assert answer.status_code == 501, answer.text
    assert answer.json()["error"] == "packages need the command git, which is not installed here"
