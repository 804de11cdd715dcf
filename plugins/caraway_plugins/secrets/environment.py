"""Secrets from environment variables, and from a `.env` file next to the manifest."""

from collections.abc import Mapping
from pathlib import Path

from caraway_plugins.secrets import dotenv


class Environment:
    """Looks in the environment first, then in `.env`; the exact name first, then in upper case."""

    def __init__(
        self, params: Mapping[str, str], base_dir: Path, environ: Mapping[str, str]
    ) -> None:
        path = base_dir / ".env"
        self._places = (environ, dotenv.read(path) if path.is_file() else {})

    def get(self, name: str) -> str | None:
        """Return the value of this name, or of this name in upper case."""
        for place in self._places:
            for spelling in (name, name.upper()):
                if spelling in place:
                    return place[spelling]
        return None
