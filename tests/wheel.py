"""Builds the sdist and the wheel, and tests the installed wheel: ``make test-wheel``.

A copy of the checkout is built, so that the build leaves no files behind. The wheel is built from the sdist, and
installed into an empty environment. The tests run in the unpacked sdist without its ``dynamo_single``, so that they
import the installed one.
``ONLY=3.13-django6.1`` chooses an interpreter and a release of Django, and words after the command go to pytest.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from pathlib import Path

from tests.versions import SUPPORTED, Combination, find_interpreter, requirements

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = "dynamo_single"
#: What is in a checkout and not in the repository.
LEFT_OUT = shutil.ignore_patterns(
    *(".git", ".venv*", ".env", "node_modules", "var", "build", "dist", "*.egg-info", "__pycache__", "*.pyc"),
    *(".pytest_cache", ".mypy_cache", ".ruff_cache", ".hypothesis", ".import_linter_cache"),
)
#: The README's and the tutorial's project, every page of the admin and of the accounts, and a project of its own.
TESTS = (
    "tests/docs/test_docs.py",
    "tests/contract/accounts/test_accounts_own_app.py",
    "tests/contract/accounts/test_accounts_signup.py",
    "tests/contract/commands/test_startproject.py",
    "tests/contract/admin/test_admin_every_page.py",
    "tests/contract/contrib/table_admin",
)
PAGES = "not test_docs or README or tutorial"
#: What the tests above import besides the package and its requirements.
TOOLS = ("hypothesis", "pyyaml", "pytest", "pytest-django", "pytest-xdist")


def files(folder: Path) -> set[str]:
    """Return the files of a folder by their relative paths."""
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}


def build(python: Path, scratch: Path) -> tuple[Path, Path]:
    """Build the sdist, unpack it, and build the wheel from it; return the unpacked sdist and the wheel."""
    copy, built = scratch / "copy", scratch / "built"
    shutil.copytree(ROOT, copy, ignore=LEFT_OUT)
    call = "import sys, setuptools.build_meta as it; getattr(it, sys.argv[1])(sys.argv[2])"
    before = files(copy)
    subprocess.run([python, "-c", call, "build_sdist", built], cwd=copy, check=True, stdout=subprocess.DEVNULL)
    (archive,) = built.glob("*.tar.gz")
    with tarfile.open(archive) as sdist:
        sdist.extractall(scratch / "sdist", filter="data")
    (unpacked,) = (scratch / "sdist").iterdir()
    missing = before - files(unpacked)
    assert not missing, f"The sdist lacks files of the checkout: {sorted(missing)}"
    subprocess.run([python, "-c", call, "build_wheel", built], cwd=unpacked, check=True, stdout=subprocess.DEVNULL)
    (wheel,) = built.glob("*.whl")
    return unpacked, wheel


def compare(wheel: Path) -> None:
    """Assert that the wheel has the files of the package, the licence and the description, and nothing else."""
    with zipfile.ZipFile(wheel) as archive:
        names = {name for name in archive.namelist() if not name.endswith("/")}
        (metadata,) = (name for name in names if name.endswith(".dist-info/METADATA"))
        said = archive.read(metadata).decode()
    packed = {name for name in names if ".dist-info/" not in name}
    wanted = {f"{PACKAGE}/{name}" for name in files(ROOT / PACKAGE) if not re.search(r"__pycache__|\.pyc$", name)}
    assert packed == wanted, f"missing: {sorted(wanted - packed)}; unexpected: {sorted(packed - wanted)}"
    assert any(name.endswith(".dist-info/licenses/LICENSE") for name in names), "The wheel has no LICENSE."
    description = (ROOT / "README.md").read_text(encoding="utf-8").strip()
    assert description in said, "README.md is not the long description."
    for line in ("License-Expression: MIT", "Keywords: ", "Author: the dynamo_single developers"):
        assert f"\n{line}" in said, f"The metadata have no line {line!r}."
    assert "\nProject-URL" not in said, "The project has no address yet."


def test(python: Path, sources: Path, arguments: list[str]) -> int:
    """Run a part of the tests in the unpacked sdist, without the package in it."""
    shutil.rmtree(sources / PACKAGE)
    (sources / "node_modules").symlink_to(ROOT / "node_modules")
    chosen = arguments or [*TESTS, "-k", PAGES]
    command = [python, "-m", "pytest", "-q", "-n", "2", "-p", "no:cacheprovider", *chosen]
    inherited = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    return subprocess.run(command, cwd=sources, check=False, env=inherited | {"TEST_BESIDE_CHECKS": "1"}).returncode


def main(arguments: list[str]) -> int:
    """Build, compare, install and test; return 1 after a failure."""
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    default = next((f"{python}-django{django}" for python, django in SUPPORTED if python == version), "")
    only = os.environ.get("ONLY") or default
    combination = next((each for each in (Combination(*pair) for pair in SUPPORTED) if each.name == only), None)
    if combination is None:
        raise SystemExit(f"ONLY is none of {', '.join(Combination(*pair).name for pair in SUPPORTED)}.")
    interpreter = Path(sys.executable) if combination.python == version else find_interpreter(combination.python)
    if interpreter is None:
        raise SystemExit(f"python{combination.python} is missing.")
    with tempfile.TemporaryDirectory(prefix="wheel-") as name:
        scratch = Path(name)
        python = scratch / "environment" / "bin" / "python"
        pip = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        subprocess.run([interpreter, "-m", "venv", scratch / "environment"], check=True)
        subprocess.run([*pip, "setuptools>=77"], check=True)
        sources, wheel = build(python, scratch)
        compare(wheel)
        pins = scratch / "pins.txt"
        pins.write_text(requirements(combination.django))
        subprocess.run([*pip, "-c", pins, f"{wheel}[phone]", "django-environ", *TOOLS], check=True)
        place = "import dynamo_single, pathlib; print(pathlib.Path(dynamo_single.__file__).parent)"
        found = subprocess.run([python, "-c", place], cwd=scratch, check=True, capture_output=True, text=True).stdout
        assert (scratch / "environment") in Path(found.strip()).parents, f"The package is imported from {found}."
        ended = test(python, sources, arguments)
    print(f"{combination.name}: the wheel {'passed' if ended == 0 else f'failed with status {ended}'}.", flush=True)
    return 1 if ended else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
