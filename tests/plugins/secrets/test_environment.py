"""The environment, and the file `.env` behind it."""

from pathlib import Path

from caraway_plugins.secrets.environment import Environment


def test_environment_comes_before_the_dotenv_file(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text("A=file\nB=file\nc=lower\n")
    store = Environment({}, tmp_path, {"A": "environment", "C": "upper"})
    assert store.get("A") == store.get("a") == "environment"
    assert store.get("b") == "file"
    assert store.get("c") == "upper"
    assert store.get("d") is None
