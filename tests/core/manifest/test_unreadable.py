from pathlib import Path

import pytest

from caraway_core.errors import ManifestError
from caraway_core.manifest import load
from tests.kit.users import nobody


def test_manifest_that_may_not_be_read_is_refused_with_its_reason(tmp_path: Path) -> None:
    path = tmp_path / "caraway.yaml"
    path.write_text("version: v1\nname: secret\n")
    load(path)  # On some machines only root can read its imports.
    path.chmod(0)
    with nobody(), pytest.raises(ManifestError) as caught:
        load(path)
    assert str(path) in str(caught.value)
    assert "ermission" in str(caught.value)
