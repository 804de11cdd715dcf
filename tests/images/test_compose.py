"""compose.yaml: its references hold, and its processes get flags that the command knows."""

import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from caraway_core import manifest

ROOT = Path(__file__).parents[2]
CARAWAY = Path(sys.executable).parent / "caraway"
COMPOSE: dict[str, Any] = yaml.safe_load((ROOT / "compose.yaml").read_text())
SERVICES: dict[str, Any] = COMPOSE["services"]
KEYS = {
    "build", "cap_drop", "command", "depends_on", "entrypoint", "environment", "healthcheck",
    "image", "mem_limit", "networks", "ports", "profiles", "read_only", "restart",
    "security_opt", "shm_size", "stop_grace_period", "tmpfs", "volumes",
}  # fmt: skip
"""The keys of the Compose specification that are used here."""


def line(service: str) -> str:
    """Return what a service starts, in one line."""
    words = [*SERVICES[service].get("entrypoint", ()), *SERVICES[service].get("command", [])]
    return " ".join(words).replace("$$", "$")


def test_only_known_keys_are_used() -> None:
    assert {key for key in COMPOSE if not key.startswith("x-")} == {
        "name", "services", "networks", "volumes",
    }  # fmt: skip
    for service in SERVICES.values():
        assert set(service) <= KEYS


def test_volumes_networks_and_dependencies_exist() -> None:
    for name, service in SERVICES.items():
        for volume in service["volumes"]:
            source = volume.partition(":")[0]
            assert source in COMPOSE["volumes"] or volume.startswith("${CARAWAY_MANIFEST"), name
        assert set(service["networks"]) <= set(COMPOSE["networks"])
        for needed in service.get("depends_on", {}):
            assert "healthcheck" in SERVICES[needed]


def test_volumes_are_mounted_where_the_image_has_folders_of_the_user() -> None:
    # A new volume takes its owner from the image's folder; elsewhere it belongs to root.
    dockerfile = (ROOT / "Dockerfile").read_text()
    made = re.search(r"install -d -o caraway -g caraway -m 0750 (.+)", dockerfile)
    assert made is not None
    for service in SERVICES.values():
        for volume in service["volumes"]:
            path, _, mode = volume.rpartition(":") if volume.endswith(":ro") else (volume, "", "rw")
            if mode != "ro":
                assert path.rpartition(":")[2] in made[1].split()


def test_every_container_is_without_rights() -> None:
    for service in SERVICES.values():
        assert service["read_only"] is True
        assert service["cap_drop"] == ["ALL"]
        assert service["security_opt"] == ["no-new-privileges:true"]


def test_containers_have_one_address() -> None:
    # Of two `hostname -i` says both, in one line.
    for network in COMPOSE["networks"].values():
        assert network["enable_ipv6"] is False


def test_what_ends_is_started_again() -> None:
    # A head ends when the state store is gone for some seconds.
    for service in SERVICES.values():
        assert service["restart"] == "unless-stopped"


def test_checks_of_health_are_programs() -> None:
    checked = []
    for name, service in SERVICES.items():
        kind, *words = service.get("healthcheck", {}).get("test", ["CMD", "alive"])
        if kind == "CMD-SHELL":
            words = shlex.split(words[0])
        if "-c" in words:
            compile(words[words.index("-c") + 1], name, "exec")
            checked.append(name)
    assert checked == ["head", "state", "scheduler"]


def test_nothing_is_served_beyond_this_machine() -> None:
    published = [port for service in SERVICES.values() for port in service.get("ports", [])]
    assert len(published) == 4
    assert all(port.startswith("127.0.0.1:") for port in published)


@pytest.mark.parametrize("service", ["head", "scheduler", "executor-1", "executor-2", "management"])
def test_flags_are_those_of_the_command(service: str) -> None:
    command = re.search(r"\b(head|scheduler|executor|management) ", line(service))
    assert command is not None
    shown = subprocess.run(
        [CARAWAY, command[1], "--help"], capture_output=True, text=True, check=True,
        env={"COLUMNS": "200", "NO_COLOR": "1"},
    ).stdout  # fmt: skip
    flags = set(re.findall(r"--[a-z-]+", line(service)))
    assert flags
    assert {flag for flag in flags if not re.search(rf"{flag}\b", shown)} == set()


def test_only_what_is_asked_for_is_started_in_addition() -> None:
    profiles = {name: said["profiles"] for name, said in SERVICES.items() if "profiles" in said}
    assert profiles == {"management": ["management"]}


def test_the_state_is_durable() -> None:
    assert "--appendonly yes --appendfsync always --maxmemory-policy noeviction" in line("state")


def test_what_it_serves_is_a_valid_manifest() -> None:
    loaded = manifest.load(ROOT / "examples" / "compose")
    location = loaded.runtime.scheduler.state_location
    mounted = [
        service for service, said in SERVICES.items() if f"results:{location}" in said["volumes"]
    ]
    assert mounted == ["scheduler", "executor-1", "executor-2"]
