"""The Dockerfile: linted, and held against what the rest of the repository says."""

import importlib.util
import re
import shlex
import subprocess
import sys
import tomllib
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
BIN = Path(sys.executable).parent
DOCKERFILE = (ROOT / "Dockerfile").read_text()


def stages() -> dict[str, str]:
    """Return the text of each stage by its name."""
    parts = re.split(r"^FROM \S+ AS (\S+)\n", DOCKERFILE, flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def parent_of(stage: str) -> str:
    match = re.search(rf"^FROM (\S+) AS {stage}$", DOCKERFILE, re.MULTILINE)
    assert match is not None
    return match[1]


def lineage(stage: str) -> str:
    """Return the text of a stage and of all that it is made from."""
    text = ""
    while stage in stages():
        text = stages()[stage] + text
        stage = parent_of(stage)
    return text


STAGES = ("scheduler", "executor", "management", "operator", "caraway")


def test_hadolint_finds_nothing() -> None:
    done = subprocess.run([BIN / "hadolint", ROOT / "Dockerfile"], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "")


def test_each_component_has_a_stage() -> None:
    assert set(STAGES) <= set(stages())


def test_all_images_run_as_the_user_of_the_pods() -> None:
    for stage in STAGES:
        text = lineage(stage)
        assert "useradd --uid 10001 --gid 10001 --home-dir /var/lib/caraway" in text
        users = re.findall(r"^USER (\S+)$", text, re.MULTILINE)
        assert (users[0], users[-1]) == ("10001:10001", "10001:10001")


def test_images_hold_no_installer_and_no_index() -> None:
    for stage in STAGES:
        text = lineage(stage)
        assert "pip uninstall --yes --root-user-action=ignore setuptools wheel pip" in text
        assert "PIP_INDEX_URL" not in text
        assert "pip install" not in text


def test_stages_that_install_trust_a_private_authority_and_images_do_not_name_it() -> None:
    installing = [
        text for text in stages().values() if re.search(r"\bpip (\S+ )*install|pip wheel", text)
    ]
    assert len(installing) == 3
    for text in installing:
        assert "ARG CA_CERTIFICATE" in text and "PIP_CERT=/ca.pem" in text
        assert text.index("/ca.pem', 'w'") < text.index("COPY")
    for stage in STAGES:
        assert "CA_CERTIFICATE" not in lineage(stage)


def test_images_hold_nothing_that_runs_as_another_user() -> None:
    for stage in STAGES:
        assert "find / -xdev -type f -perm /6000 -exec chmod a-s {} +" in lineage(stage)


def test_images_that_read_repositories_hold_git_and_others_do_not() -> None:
    installing = [
        stage for stage in STAGES if re.search(r"apt-get install .*\bgit\b", lineage(stage))
    ]
    assert installing == ["scheduler", "management", "caraway"]
    for stage in installing:
        _, after = lineage(stage).split("apt-get install")
        assert "rm -rf /var/lib/apt/lists/*" in after and "chmod a-s" in after


def test_bytecode_of_the_standard_library_is_in_the_images(tmp_path: Path) -> None:
    # It cannot be written later, and the base image leaves it out.
    for stage in STAGES:
        assert "compileall" in lineage(stage)
    command = re.search(r"&& python (-m compileall .+) /usr/local/lib/python3\*", DOCKERFILE)
    assert command is not None
    library = tmp_path / "python3"
    for name in ("json/decoder.py", "test/bad.py", "lib2to3/tests/bad.py", "site-packages/x/a.py"):
        (library / name).parent.mkdir(parents=True, exist_ok=True)
        (library / name).write_text("not python" if name.endswith("bad.py") else "one = 1\n")
    done = subprocess.run([sys.executable, *shlex.split(command[1]), library])
    assert done.returncode == 0
    assert [found.parts[-3] for found in library.rglob("*.pyc")] == ["json"]


def test_ray_runs_without_what_is_removed_of_it() -> None:
    removed = re.findall(r"site-packages/(ray/\w+)", lineage("cluster-packages"))
    assert removed == ["ray/jars"]
    ray = importlib.util.find_spec("ray")
    assert ray is not None
    assert ray.origin is not None
    # The only place that asks for them, and goes on without; no image holds a `java`.
    services = (Path(ray.origin).parent / "_private" / "services.py").read_text()
    assert re.search(r"get_ray_jars_dir\(\)\n.+\n.+\n +except Exception:\n +pass\n", services)


def test_a_builder_without_buildkit_can_build_it() -> None:
    for only_buildkit in (r"^# *syntax=", r"--mount=", r"--chmod", r"--link", r"<<"):
        assert re.search(only_buildkit, DOCKERFILE, re.MULTILINE) is None, only_buildkit


def test_the_context_holds_every_package_of_the_wheel_and_nothing_else_large() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    packages = project["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"]
    lines = (ROOT / ".dockerignore").read_text().split()
    assert lines.index("*") < min(i for i, line in enumerate(lines) if line.startswith("!"))
    for package in packages:
        assert f"!{package.split('/')[0]}" in lines
    for copied in re.findall(r"^COPY (?!--from)(.+) \S+$", DOCKERFILE, re.MULTILINE):
        for path in copied.split():
            assert path == "." or any(path.startswith(line[1:]) for line in lines), path


def test_the_lists_of_requirements_agree_with_that_of_the_tests() -> None:
    def pins(name: str) -> dict[str, str]:
        text = (ROOT / "requirements" / name).read_text()
        return dict(re.findall(r"^([a-z0-9.-]+)==([^\s;]+)", text, re.MULTILINE))

    tested = pins("dev.txt")
    for name in ("image.txt", "operator.txt"):
        assert pins(name)
        for package, version in pins(name).items():
            assert tested.get(package, version) == version, package


def test_the_start_script_puts_an_init_above_the_first_process_only() -> None:
    script = (ROOT / "docker" / "caraway").read_text()
    assert script.startswith("#!/bin/sh\n")
    subprocess.run(["sh", "-n", ROOT / "docker" / "caraway"], check=True)
    first, other = re.findall(r"^ *exec (.+)$", script, re.MULTILINE)
    assert first == f"dumb-init --single-child -- {other}"
    for name in ("caraway", "alive"):
        assert (ROOT / "docker" / name).stat().st_mode & 0o555 == 0o555


@pytest.mark.parametrize(
    ("requirements", "modules", "one"),
    [
        ("operator.txt", "caraway_operator.command, caraway.cli.runtime", "kopf"),
        ("image.txt", "caraway_operator.command, caraway.cli.runtime", "kopf"),
        (
            "image.txt",
            "caraway_gateway.composition.command, caraway_executor.actor, "
            "caraway_cluster.store.command",
            "datafusion",
        ),
        (
            "image.txt",
            "caraway_management.command, caraway.cli.management, asyncpg",
            "sqlalchemy",
        ),
    ],
)
def test_images_hold_all_that_their_commands_import(
    requirements: str, modules: str, one: str
) -> None:
    program = f"""
import sys, importlib.metadata as metadata
import {modules}
known = metadata.packages_distributions()
roots = {{name.partition(".")[0] for name in sys.modules}}
print(*{{name.lower().replace("_", "-") for root in roots for name in known.get(root, ())}})
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    imported = set(done.stdout.split())
    assert one in imported
    pinned = (ROOT / "requirements" / requirements).read_text()
    held = set(re.findall(r"^([a-z0-9.-]+)==", pinned, re.MULTILINE))
    # Imported where they happen to be installed, by those that can do without; psutil is Ray's own.
    optional = {
        "backports.tarfile", "backports.zstd", "bcrypt", "pandas", "psutil", "rfc3339-validator",
        "setuptools", "six", "uvloop", "zstandard",
    }  # fmt: skip
    # Several packages share the root `google`.
    shared = {name.lower() for name in packages_distributions()["google"]}
    assert imported - held - optional - shared - {"caraway"} == set()


def test_the_cluster_image_holds_every_source() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    groups = project["entry-points"].values()
    named = " ".join(value for group in groups for value in group.values())
    extras = set(re.findall(r"\[(.+?)\]", named))
    held = re.search(r"caraway\[(.+)\]", project["optional-dependencies"]["image"][0])
    assert held is not None
    # `cluster` holds `runtime`.
    assert extras - {"runtime"} <= set(held[1].split(","))
