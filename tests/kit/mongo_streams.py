"""A server of MongoDB's protocol that has change streams: mongo-java-server, from Maven."""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pymongo
import pytest

from tests.kit.mongo_server import MongoServer

JARS = Path(os.environ.get("CARAWAY_CLIENTS", ".venv/clients")) / "mongodb"
_PROGRAM = Path(__file__).parents[1] / "e2e" / "clients" / "mongodb" / "StreamServer.java"
_STOP_S = 60


@contextmanager
def serving() -> Iterator[MongoServer]:
    """Start a server; skip the test where it, or Java, is missing."""
    if shutil.which("java") is None or not list(JARS.glob("*.jar")):
        pytest.skip(
            "NOT TESTED: no java, or no mongo-java-server: mvn --file "
            "tests/e2e/clients/mongodb/pom.xml dependency:copy-dependencies "
            f"-DoutputDirectory={JARS.absolute()}"
        )
    with tempfile.TemporaryFile() as log:
        process = subprocess.Popen(
            ["java", "-Xmx256m", "-XX:TieredStopAtLevel=1", "-cp", f"{JARS.resolve()}/*", _PROGRAM],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True,
        )  # fmt: skip
        assert process.stdout is not None and process.stdin is not None
        try:
            address = process.stdout.readline().strip()
            assert address, log.seek(0) or log.read()[-2_000:]
            client: Any
            with pymongo.MongoClient(address) as client:
                yield MongoServer(address, client, process)
        finally:
            process.stdin.close()
            process.stdout.close()
            process.kill()
            process.wait(_STOP_S)
