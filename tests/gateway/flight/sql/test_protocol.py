"""The generated messages."""

import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest

from caraway_gateway.flight.sql import protocol

FOLDER = Path(protocol.__file__).parent


@pytest.mark.parametrize("name", ["Flight", "FlightSql"])
def test_generated_module_is_of_the_interface(name: str, tmp_path: Path) -> None:
    assert metadata.version("grpcio-tools").startswith("1.78.")
    into = ["-I", str(FOLDER), f"--python_out={tmp_path}"]
    made = [sys.executable, "-W", "ignore", "-m", "grpc_tools.protoc", *into, f"{name}.proto"]
    subprocess.run(made, check=True, timeout=60)
    generated = (tmp_path / f"{name}_pb2.py").read_text()
    assert generated == (FOLDER / f"{name}_pb2.py").read_text(), "run `make protos`"
