"""Run the tests on every supported version of Python and Django: ``make test-versions``.

Each combination has a virtual environment in ``.venvs``, with an interpreter from the PATH or from pyenv. Words after
the command go to pytest; ``ONLY=3.12-django6.1`` runs one combination. It uses only the standard library, so that any
Python 3.11 can run it.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
#: Differences from the project's own pins for each release of Django.
PINS = {"5.2": None, "6.1": ROOT / "tests" / "requirements-django61.txt"}
#: The releases of Django that the private names and the lists of decisions support.
DJANGOS = frozenset(PINS)
#: Django 6 has no release for Python 3.11.
SUPPORTED = (("3.11", "5.2"), ("3.12", "5.2"), ("3.13", "5.2"), ("3.12", "6.1"), ("3.13", "6.1"))


class Combination(NamedTuple):
    """A version of Python and one of Django."""

    python: str
    django: str

    @property
    def name(self) -> str:
        """The name of the combination in output and on disk."""
        return f"{self.python}-django{self.django}"

    @property
    def folder(self) -> Path:
        """Its virtual environment."""
        return ROOT / ".venvs" / self.name

    @property
    def output(self) -> Path:
        """The path of pytest's last output."""
        return ROOT / "var" / "versions" / f"{self.name}.txt"


def find_interpreter(version: str) -> Path | None:
    """Return a working interpreter of a version: pyenv's shims also exist for unselected versions."""
    name = f"python{version}"
    on_path = shutil.which(name)
    for candidate in [*([on_path] if on_path else []), *_of_pyenv(name)]:
        probe = subprocess.run(
            [candidate, "-c", "import sys; print(sys.executable); print('%d.%d' % sys.version_info[:2])"],
            capture_output=True,
            text=True,
            check=False,
        )
        if probe.returncode == 0 and probe.stdout.split("\n")[1] == version:
            return Path(probe.stdout.split("\n")[0])
    return None


def _of_pyenv(name: str) -> list[str]:
    root = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv")
    found = root.glob(f"versions/*/bin/{name}")
    return [str(path) for path in sorted(found, key=lambda path: [int(n) for n in re.findall(r"\d+", str(path))])][::-1]


def requirements(django: str) -> str:
    """Return the pins of the project and its tests as one file, with those of a release of Django."""
    lines = [
        line
        for file in ("requirements.txt", "tests/requirements.txt")
        for line in (ROOT / file).read_text().splitlines()
        if re.match(r"[A-Za-z]", line)
    ]
    pins = dict(line.split("==") for line in lines)
    if (file := PINS[django]) is not None:
        other = dict(line.split("==") for line in file.read_text().splitlines() if re.match(r"[A-Za-z]", line))
        unknown = other.keys() - pins.keys()
        if unknown:
            raise SystemExit(f"{file.name} replaces what the project does not pin: {', '.join(sorted(unknown))}")
        pins |= other
    return "".join(f"{name}=={version}\n" for name, version in pins.items())


def install(combination: Combination, interpreter: Path) -> None:
    """Make the virtual environment, or make it again if a pin or the interpreter changed."""
    wanted = f"# {interpreter}\n{requirements(combination.django)}"
    stamp = combination.folder / "requirements.txt"
    if stamp.exists() and stamp.read_text() == wanted:
        return
    print(f"{combination.name}: installing", flush=True)
    subprocess.run([interpreter, "-m", "venv", "--clear", combination.folder], check=True)
    unstamped = stamp.with_suffix(".new")
    unstamped.write_text(wanted)
    pip = [combination.folder / "bin" / "python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*pip, "-r", unstamped], check=True)
    unstamped.rename(stamp)


def run(combination: Combination, arguments: list[str]) -> bool:
    """Run the tests, and print the result in one line."""
    combination.output.parent.mkdir(parents=True, exist_ok=True)
    with combination.output.open("w") as output:
        command = [combination.folder / "bin" / "python", "-m", "pytest", "-q", "-n", "2", *arguments]
        ended = subprocess.run(
            command,
            stdout=output,
            stderr=subprocess.STDOUT,
            check=False,
            cwd=ROOT,
            # Ruff, mypy and the like of this combination, for tests that call them by name.
            env=os.environ | {"PATH": f"{combination.folder / 'bin'}:{os.environ['PATH']}"},
        )
    lines = [line for line in combination.output.read_text().splitlines() if line.strip()]
    print(f"{combination.name}: {lines[-1].strip('= ') if lines else 'no output'}", flush=True)
    if ended.returncode:
        # A status below zero is a signal: there is no summary then.
        shown = combination.output.relative_to(ROOT)
        print(f"{combination.name}: ended with status {ended.returncode}, see {shown}", flush=True)
    return ended.returncode == 0


def main(arguments: list[str]) -> int:
    """Run every combination whose interpreter is here, and name the others; 1 after a failure."""
    only = os.environ.get("ONLY")
    chosen = [each for each in (Combination(*pair) for pair in SUPPORTED) if only in (None, "", each.name)]
    if not chosen:
        raise SystemExit(f"ONLY is none of {', '.join(Combination(*pair).name for pair in SUPPORTED)}.")
    interpreters = {version: find_interpreter(version) for version in sorted({each.python for each in chosen})}
    passed = []
    for combination in chosen:
        if (interpreter := interpreters[combination.python]) is None:
            print(f"{combination.name}: not run, python{combination.python} is missing", flush=True)
            continue
        install(combination, interpreter)
        passed.append(run(combination, arguments))
    missing = [f"python{version}" for version, path in interpreters.items() if path is None]
    if missing:
        print(f"Missing interpreters: {', '.join(missing)}")
    # Without a run, there is no result.
    return 0 if passed and all(passed) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
