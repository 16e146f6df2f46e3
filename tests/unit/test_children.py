"""Children that are forked do what a new interpreter does with the same command line."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests import children

ENVIRONMENT = {"PATH": os.environ["PATH"], "ONE": "1"}


@pytest.mark.parametrize(
    "program",
    [
        "print(1)",
        "import sys; print(sys.argv, input()); sys.exit(3)",
        "import sys; sys.exit('a text')",
        "import os; print(sorted(name for name in os.environ if name != 'LC_CTYPE'), os.getcwd(), __name__)",
        "import atexit; atexit.register(print, 'at the end')",
        "import threading; threading.Timer(0.05, print, ['of a thread']).start()",
        "import os, signal; os.kill(os.getpid(), signal.SIGTERM)",
        "import os; os._exit(7)",
    ],
)
@pytest.mark.parametrize("how", ["-c", "-m", "a file"])
def test_a_child_is_as_an_interpreter(tmp_path: Path, program: str, how: str) -> None:
    """What it prints, and how it ends."""
    (tmp_path / "program.py").write_text(program)
    command = {"-c": ["-c", program], "-m": ["-m", "program"], "a file": ["program.py"]}[how]
    ours = children.run([*command, "x"], cwd=tmp_path, env=ENVIRONMENT, input="a line\n")
    new = subprocess.run(  # noqa: S603 - programs of this file
        [sys.executable, *command, "x"], cwd=tmp_path, env=ENVIRONMENT, input="a line\n", capture_output=True, text=True
    )
    assert (ours.returncode, ours.stdout, ours.stderr) == (new.returncode, new.stdout, new.stderr)


def test_an_error_is_a_traceback(tmp_path: Path) -> None:
    """It ends with the error, and the code is one."""
    child = children.run(["-c", "1 / 0"], cwd=tmp_path, env=ENVIRONMENT, together=True)
    assert child.returncode == 1
    assert child.stdout.endswith("ZeroDivisionError: division by zero\n")


def test_a_child_imports_from_its_folder_and_from_the_path_that_it_is_given(tmp_path: Path) -> None:
    """And from no folder of the tests."""
    for name in ("here", "there"):
        (tmp_path / name).mkdir()
        (tmp_path / name / f"of_{name}.py").touch()
    environment = {**ENVIRONMENT, "PYTHONPATH": str(tmp_path / "there")}
    program = "import of_here, of_there\nimport tests"
    child = children.run(["-c", program], cwd=tmp_path / "here", env=environment)
    assert child.stderr.endswith("ModuleNotFoundError: No module named 'tests'\n")


def test_a_child_that_takes_too_long_is_ended(tmp_path: Path) -> None:
    """Whoever waits has the error, and nothing is left running."""
    with pytest.raises(subprocess.TimeoutExpired):
        children.run(["-c", "import signal; signal.pause()"], cwd=tmp_path, env=ENVIRONMENT, timeout=0.01)
    with (tmp_path / "log").open("w") as log:
        running = children.Dialogue(["-c", "input()"], cwd=tmp_path, env=ENVIRONMENT, stderr=log)
    running.kill()
    assert running.close() == -9
