"""Run Django's own tests on every supported release of Django: ``make test-django``.

Each release has the virtual environment of ``tests/versions.py`` with the oldest Python that is here for it.
"""

from __future__ import annotations

import subprocess
import sys

from tests.versions import PINS, ROOT, SUPPORTED, Combination, find_interpreter, install


def main(arguments: list[str]) -> int:
    """Run the releases sequentially; return 1 after a failure, or if a release has no interpreter."""
    ended = []
    for django in PINS:
        found = ((python, find_interpreter(python)) for python, release in SUPPORTED if release == django)
        python, interpreter = next(((name, path) for name, path in found if path is not None), (None, None))
        if python is None or interpreter is None:
            print(f"Django {django}: not run, no interpreter of a Python that it supports is here", flush=True)
            ended.append(1)
            continue
        combination = Combination(python, django)
        install(combination, interpreter)
        command = [combination.folder / "bin" / "python", "-m", "tests.upstream.run", *arguments]
        ended.append(subprocess.run(command, cwd=ROOT, check=False).returncode)
    return max(ended)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
