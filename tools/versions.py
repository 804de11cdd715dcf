"""Writes the version of `core/caraway_core/releases/version.py` to the files that cannot import it.

Run `python -m tools.versions` after you change the version. A test compares the files.
"""

import re
from pathlib import Path

from caraway_core.releases.version import __version__

ROOT = Path(__file__).parents[1]
_NUMBER = r"\d+\.\d+\.\d+(?:[-.]?(?:a|b|rc|dev)\d+)?"
# Each pattern has one group before the version.
PLACES = {
    "charts/caraway/Chart.yaml": [r"^(version: )", r'^(appVersion: ")'],
    "Dockerfile": [r"^(ARG VERSION=)", r"^(#   docker build -t caraway:)"],
    "compose.yaml": [r"(image: \$\{CARAWAY_IMAGE:-caraway:)"],
    "console/package.json": [r'\A(\{\s*"name": "[^"]+",\s*"private": true,\s*"version": ")'],
    "console/package-lock.json": [
        r'\A(\{\s*"name": "[^"]+",\s*"version": ")',
        r'^(    "": \{\s*"name": "[^"]+",\s*"version": ")',
    ],
    "README.md": [r"^(docker build -t caraway:)"],
    "docs/operate/install.md": [
        r"^(docker build -t registry\.example/caraway:)",
        r"^(docker push registry\.example/caraway:)",
    ],
    "docs/operate/upgrade.md": [r"(cluster\.spec\.image\.tag=)"],
}


def written(text: str, patterns: list[str], version: str = __version__) -> str:
    """Return a text with the version at each of these places.

    Raises `LookupError` if a pattern does not match exactly once.
    """
    for pattern in patterns:
        text, count = re.subn(pattern + _NUMBER, rf"\g<1>{version}", text, flags=re.MULTILINE)
        if count != 1:
            raise LookupError(f"{pattern!r} matches {count} times in place of once")
    return text


def files(version: str = __version__) -> dict[Path, str]:
    """Return the text of each file that contains the version."""
    return {
        ROOT / name: written((ROOT / name).read_text(), patterns, version)
        for name, patterns in PLACES.items()
    }


def main() -> None:
    """Write the files."""
    for path, text in files().items():
        path.write_text(text)


if __name__ == "__main__":
    main()
