"""What the program that starts a node changes in the commands of Ray."""

import pytest

from caraway_core.ray_nodes import start_hook


def test_only_a_raylet_is_told_that_its_dashboard_agent_has_no_ports() -> None:
    raylet = start_hook.without_agent_ports(["/ray/raylet/raylet", "--metrics-agent-port=0"])
    assert raylet[:2] == ["/ray/raylet/raylet", "--metrics-agent-port=0"]
    assert {flag.rpartition("=")[2] for flag in raylet[2:]} == {"-1"}
    other = ["/ray/gcs/gcs_server", "--metrics-agent-port=0"]
    assert start_hook.without_agent_ports(other) == other


@pytest.mark.parametrize(
    ("flags", "is_durable"), [([], False), (["--redis_address=db.test:6380"], True)]
)
def test_the_address_of_a_state_server_is_in_its_command(
    flags: list[str], is_durable: bool
) -> None:
    command = ["/ray/gcs/gcs_server", "--verbose", "--node-ip-address=127.201.7.1",
               "--gcs_server_port=19000", "--config={a=b}", *flags]  # fmt: skip
    assert start_hook.watched(command) == ("127.201.7.1:19000", is_durable)
