"""Runs manifests, and the client, in the environment of an extra."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.kit.processes import Child, child
from tests.package.environments import environment, ran

HEAD = "version: v1\nkind: Caraway\nname: alone\n"
WORDS = "{from: 'file:words.csv', name: words"
PLAIN = f"datasets: [{WORDS}}}]\n"


@contextmanager
def started(folder: Path, extra: str, manifest: str) -> Iterator[Child]:
    """Run a manifest with an empty home, and read a file by both protocols."""
    programs = environment(extra)
    (folder / "words.csv").write_text("id,word\n1,lost machines\n2,tea\n")
    (folder / "caraway.yaml").write_text(HEAD + manifest)
    home = folder / "home"
    home.mkdir()
    with child(
        folder, folder, environ={"HOME": str(home)}, program=programs / "caraway"
    ) as runtime:
        assert runtime.sql("SELECT sum(id) AS n FROM words").json() == [{"n": 3}]
        yield runtime


def client(runtime: Child, extra: str, *arguments: str) -> str:
    """Run a command of the client, of the same environment."""
    urls = {"CARAWAY_HTTP_URL": f"http://{runtime.addresses['http']}",
            "CARAWAY_FLIGHT_URL": f"grpc://{runtime.addresses['flight']}"}  # fmt: skip
    return ran([environment(extra) / arguments[0], *arguments[1:]], environ=urls)
