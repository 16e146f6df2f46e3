"""Django's own tests, from the source distribution of the Django that is installed; nothing of them is committed.

The package client fetches it once for each version, into a folder that git ignores.
"""

from __future__ import annotations

import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

import django

ROOT = Path(__file__).resolve().parent.parent.parent
CACHE = ROOT / "var" / "upstream"


def tests_folder() -> Path:
    """Return the folder of the installed Django's tests; download and unpack them first if it does not exist."""
    name = f"django-{django.get_version()}"
    unpacked = CACHE / name
    if not unpacked.is_dir():
        CACHE.mkdir(parents=True, exist_ok=True)
        # An interrupted download must not look complete, and another process may have created the folder first.
        with tempfile.TemporaryDirectory(dir=CACHE) as scratch:
            _unpack(_download(Path(scratch)), name, Path(scratch))
            if not unpacked.is_dir():
                (Path(scratch) / name).rename(unpacked)
    return unpacked / "tests"


def _download(folder: Path) -> Path:
    wanted = f"django=={django.get_version()}"
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check"]
    command += ["--no-deps", "--no-binary", "django", "--dest", str(folder), wanted]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    found = sorted(folder.glob("[dD]jango-*.tar.gz"))
    if ended.returncode or not found:
        raise SystemExit(
            f"The source distribution of {wanted}, which has Django's tests, is not to be had:\n{ended.stderr}"
        )
    return found[0]


def _unpack(archive: Path, name: str, folder: Path) -> None:
    with tarfile.open(archive) as packed:
        members = [each for each in packed.getmembers() if each.name.lower().startswith(f"{name}/tests/")]
        for member in members:
            member.name = name + member.name[len(name) :]
        packed.extractall(folder, members, filter="data")
