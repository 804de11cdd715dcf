import logging
from pathlib import Path

import pytest

from caraway_core import manifest as manifests
from caraway_gateway.composition import security
from caraway_gateway.composition.key_reloading import KeyReloader
from caraway_serving.access import Keyring

_MANIFEST = """version: v1
kind: Caraway
name: test
secrets:
  - from: file:{folder}
    name: keys
runtime:
  auth:
    api-key:
      enabled: true
      keys: ["${{keys:1}}:rw", "${{keys:2}}"]
"""


def _reloader(folder: Path) -> tuple[KeyReloader, Keyring]:
    path = folder / "caraway.yaml"
    path.write_text(_MANIFEST.format(folder=folder))
    manifest = manifests.load(path)
    secrets = manifests.build_resolver(manifest, {})
    ring = security.keyring(manifest, secrets)
    assert ring is not None
    return KeyReloader(manifest, secrets, ring), ring


async def test_a_changed_key_is_taken_over_and_the_other_stays(tmp_path: Path) -> None:
    (tmp_path / "1").write_text("one\n")
    (tmp_path / "2").write_text("two\n")
    reloader, ring = _reloader(tmp_path)
    await reloader.look()
    (tmp_path / "1").write_text("new\n")
    await reloader.look()
    assert ring.find("one") is None
    new, two = ring.find("new"), ring.find("two")
    assert new is not None and new.may_write
    assert two is not None and not two.may_write


async def test_keys_that_cannot_be_read_leave_the_last_ones_in_force(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "1").write_text("one\n")
    (tmp_path / "2").write_text("two\n")
    reloader, ring = _reloader(tmp_path)
    (tmp_path / "1").write_text("\n")
    (tmp_path / "2").write_text("\n")
    with caplog.at_level(logging.ERROR):
        await reloader.look()
        await reloader.look()
    assert ring.find("one") is not None
    assert len(caplog.records) == 1
    (tmp_path / "1").unlink()
    await reloader.look()
    assert ring.find("one") is not None
    (tmp_path / "1").write_text("back\n")
    await reloader.look()
    assert ring.find("back") is not None
