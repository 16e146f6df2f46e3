"""Build the sdist and the wheel, and test the installed wheel: ``make test-wheel``.

A copy of the checkout is built, so that the build leaves no files behind. The wheel is built from the sdist. For each
supported pair of Python and Django whose interpreter is installed, it is installed into an empty environment, and the
tests run in the unpacked sdist without its ``dynamo_single``, so that they import the installed one.
``ONLY=3.13-django6.1`` chooses one pair, and ``ONLY=here`` the first pair of the Python that runs this module. Words
after the command go to pytest.
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
#: Files of a checkout outside the repository.
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
#: Imports of the tests above in addition to the package and its requirements.
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
    """Assert that the wheel contains exactly the package's files, the license and the description."""
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


def prepare(sources: Path) -> None:
    """Make the unpacked sdist a place to run tests in: without the package, and with the engine."""
    shutil.rmtree(sources / PACKAGE)
    (sources / "node_modules").symlink_to(ROOT / "node_modules")


def create(interpreter: Path, folder: Path) -> list[str | Path]:
    """Create a virtual environment, and return the command that installs packages into it."""
    subprocess.run([interpreter, "-m", "venv", folder], check=True)
    return [folder / "bin" / "python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]


def test(combination: Combination, interpreter: Path, wheel: Path, sources: Path, arguments: list[str]) -> bool:
    """Install the wheel for a pair, run a part of the tests, and print how they ended."""
    with tempfile.TemporaryDirectory(prefix=f"wheel-{combination.name}-") as name:
        environment, pins = Path(name) / "environment", Path(name) / "pins.txt"
        pip = create(interpreter, environment)
        pins.write_text(requirements(combination.django))
        subprocess.run([*pip, "-c", pins, f"{wheel}[phone]", "django-environ", *TOOLS], check=True)
        python = environment / "bin" / "python"
        place = "import dynamo_single, pathlib; print(pathlib.Path(dynamo_single.__file__).parent)"
        found = subprocess.run([python, "-c", place], cwd=name, check=True, capture_output=True, text=True).stdout
        assert environment in Path(found.strip()).parents, f"The package is imported from {found}."
        chosen = arguments or [*TESTS, "-k", PAGES]
        command = [python, "-m", "pytest", "-q", "-n", "2", "-p", "no:cacheprovider", *chosen]
        inherited = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
        set_to = inherited | {"TEST_BESIDE_CHECKS": "1"}
        ended = subprocess.run(command, cwd=sources, check=False, env=set_to).returncode
    print(f"{combination.name}: the wheel {'passed' if ended == 0 else f'failed with status {ended}'}.", flush=True)
    return ended == 0


def chosen_pairs() -> list[Combination]:
    """Return the pairs that ``ONLY`` chooses; all of them without it."""
    only, pairs = os.environ.get("ONLY"), [Combination(*pair) for pair in SUPPORTED]
    if only == "here":
        version = f"{sys.version_info.major}.{sys.version_info.minor}"
        return [each for each in pairs if each.python == version][:1]
    return [each for each in pairs if only in (None, "", each.name)]


def main(arguments: list[str]) -> int:
    """Build and compare once, then install and test for each pair; return 1 after a failure or without a pair."""
    pairs = chosen_pairs()
    if not pairs:
        raise SystemExit(f"ONLY is none of here, {', '.join(Combination(*pair).name for pair in SUPPORTED)}.")
    passed = []
    with tempfile.TemporaryDirectory(prefix="wheel-") as name:
        scratch = Path(name)
        subprocess.run([*create(Path(sys.executable), scratch / "environment"), "setuptools>=77"], check=True)
        sources, wheel = build(scratch / "environment" / "bin" / "python", scratch)
        compare(wheel)
        prepare(sources)
        for pair in pairs:
            if (interpreter := find_interpreter(pair.python)) is None:
                print(f"{pair.name}: not run, python{pair.python} is missing", flush=True)
                continue
            passed.append(test(pair, interpreter, wheel, sources, arguments))
    print(f"{sum(passed)} of {len(pairs)} pairs passed.", flush=True)
    return 0 if passed and all(passed) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
