"""Which files belong to a package, and what is refused before it is read."""

from collections.abc import Mapping

import pytest

from caraway_core.errors import InvalidRequestError
from caraway_core.packages import collecting
from caraway_core.packages.collecting import Package
from caraway_core.packages.sources import PackageSource

SHA = "0" * 40
MANIFEST = "kind: Spicepod\nname: app\n"


class Files:
    def __init__(self, files: Mapping[str, str | bytes]) -> None:
        self._files = files
        self.asked: list[str] = []

    async def read(self, path: str, most_bytes: int) -> bytes | None:
        self.asked.append(path)
        content = self._files.get(path)
        content = content.encode() if isinstance(content, str) else content
        if content is not None and len(content) > most_bytes:
            raise ValueError(f"has more than {most_bytes} bytes")
        return content


class Others:
    def __init__(self, files: Mapping[str, str | bytes] | None = None) -> None:
        self._files = files
        self.asked: list[str] = []

    async def files(self, source: PackageSource) -> Files:
        self.asked.append(source.commit)
        if self._files is None:
            raise InvalidRequestError("there is no such repository")
        return Files(self._files)


async def collect(
    files: Mapping[str, str | bytes], path: str = "caraway.yaml", others: Others | None = None
) -> Package:
    return await collecting.collect(Files(files), path, others or Others())


async def test_only_files_that_manifests_name_are_read() -> None:
    package = await collect({
        "caraway.yaml": MANIFEST + "views: [{name: v, sql_ref: v.sql}]\n"
        "datasets: [{ref: sales}, {ref: d.yaml}]\ndependencies: [lib]\n",
        "v.sql": "select 1",
        "sales/dataset.yaml": "name: s\nfrom: file:data.csv\n",
        "d.yaml": "name: d\nfrom: file:data.csv\n",
        "data.csv": "a\n1\n",
        ".env": "PASSWORD=hunter2",
        "spicepods/lib/spicepod.yml": MANIFEST + "functions: [{name: f, body_ref: f.sql}]\n",
        "spicepods/lib/f.sql": "1",
    })  # fmt: skip
    assert package.manifest == "caraway.yaml"
    assert sorted(package.files) == [
        "caraway.yaml", "d.yaml", "sales/dataset.yaml", "spicepods/lib/f.sql",
        "spicepods/lib/spicepod.yml", "v.sql",
    ]  # fmt: skip
    assert "hunter2" not in repr(package)


async def test_a_folder_means_the_manifest_in_it() -> None:
    package = await collect({"apps/shop/spicepod.yaml": MANIFEST, "x": ""}, "apps/shop")
    assert package == Package("spicepod.yaml", {"spicepod.yaml": MANIFEST.encode()})


async def test_texts_of_components_are_beside_their_file() -> None:
    package = await collect({
        "caraway.yaml": MANIFEST + "views: [{ref: views/a}, {ref: views/a}]\n",
        "views/a/view.yaml": "name: a\nsql_ref: ../b.sql\n",
        "views/b.sql": "select 1",
    })  # fmt: skip
    assert sorted(package.files) == ["caraway.yaml", "views/a/view.yaml", "views/b.sql"]


async def test_manifests_that_depend_on_each_other_are_read_once() -> None:
    package = await collect({
        "caraway.yaml": MANIFEST + "dependencies: [./a]\n",
        "a/caraway.yaml": MANIFEST + "dependencies: [../caraway.yaml, ../b]\n",
        "b/caraway.yaml": MANIFEST + "dependencies: [../a]\n",
    })  # fmt: skip
    assert sorted(package.files) == ["a/caraway.yaml", "b/caraway.yaml", "caraway.yaml"]


async def test_dependencies_of_other_repositories_have_a_place_of_their_own() -> None:
    others = Others({"pods/p/caraway.yaml": MANIFEST + "views: [{name: v, sql_ref: v.sql}]\n",
                     "pods/p/v.sql": "select 1"})  # fmt: skip
    source = f"git:acme/pods/{SHA}/pods/p"
    files = {"caraway.yaml": MANIFEST + f"dependencies: ['{source}', '{source}']\n"}
    package = await collect(files, others=others)
    place = f"spicepods/acme/pods/{SHA}/pods/p"
    assert sorted(package.files) == ["caraway.yaml", f"{place}/caraway.yaml", f"{place}/v.sql"]
    # A package that holds them needs no repository.
    away = Others()
    assert await collecting.collect(Files(package.files), "caraway.yaml", away) == package
    assert away.asked == []


def chain(length: int) -> dict[str, str | bytes]:
    files: dict[str, str | bytes] = {
        f"m{n}.yaml": MANIFEST + f"dependencies: [m{n + 1}.yaml]\n" for n in range(length)
    }
    return {**files, f"m{length}.yaml": MANIFEST}


async def test_manifests_may_be_nested_up_to_a_depth() -> None:
    depth = collecting.MOST_DEPTH
    assert len((await collect(chain(depth), "m0.yaml")).files) == depth + 1
    with pytest.raises(InvalidRequestError, match=f"nested more than {depth} deep"):
        await collect(chain(depth + 1), "m0.yaml")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("name: app\n", "'caraway.yaml' is no manifest: it has no 'kind' and 'name'"),
        (b"\xff", "'caraway.yaml' is not UTF-8"),
        ("a: [", "caraway.yaml"),
        (MANIFEST + "dependencies: [1]\n", "dependencies[0] must be the path of a file"),
        (MANIFEST + "dependencies: ['']\n", "dependencies[0] must be the path of a file"),
        (MANIFEST + "dependencies: [x]\n", "dependencies[0]: the package has no 'x'"),
        (MANIFEST + "dependencies: [../x]\n", "must name a file in the folder of the package"),
        (MANIFEST + "dependencies: [/etc/passwd]\n", "must name a file in the folder"),
        (MANIFEST + "dependencies: ['git:a/b/c']\n", "dependencies[0] must have four parts"),
        (MANIFEST + f"dependencies: ['git:a/b/{SHA}/c']\n", "there is no such repository"),
        (MANIFEST + "views: [{ref: x}]\n", "views[0].ref: the package has no 'x'"),
        (MANIFEST + "views: [{ref: {a: b}}]\n", "views[0].ref must be the path of a file"),
        (MANIFEST + "views: [{sql_ref: ../x}]\n", "must name a file in the folder"),
    ],
)
async def test_what_cannot_be_a_package_is_refused(text: str | bytes, message: str) -> None:
    with pytest.raises(InvalidRequestError) as caught:
        await collect({"caraway.yaml": text})
    assert message in caught.value.message


async def test_an_absent_manifest_is_told_with_what_it_may_be_called() -> None:
    with pytest.raises(InvalidRequestError, match=r"no manifest 'x'; name a file.*caraway.yaml"):
        await collect({}, "x")


async def test_files_and_bytes_of_a_package_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    files = {"caraway.yaml": MANIFEST + "views: [{sql_ref: a}, {sql_ref: b}]\n",
             "a": "x" * 50, "b": "x" * 51}  # fmt: skip
    monkeypatch.setattr(collecting, "MOST_BYTES", len(files["caraway.yaml"]) + 100)
    with pytest.raises(InvalidRequestError, match="'b' has more than 50 bytes"):
        await collect(files)
    monkeypatch.setattr(collecting, "MOST_FILES", 2)
    with pytest.raises(InvalidRequestError, match="more than 2 files"):
        await collect(files)
