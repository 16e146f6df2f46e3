"""A case in a separate process, because whole pages of two projects need different settings.

The child imports a module, calls its ``prepare()`` for the case, and runs the case as often as the parent requests.
It returns the CPU seconds of its process for one call.
"""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import time
from importlib import import_module
from pathlib import Path
from types import TracebackType
from typing import Self

ROOT = Path(__file__).resolve().parents[2]


class Worker:
    """A child with separate settings, and a context manager that stops it."""

    def __init__(self, module: str, settings: str, **environment: str) -> None:
        known = {**os.environ, "DJANGO_SETTINGS_MODULE": settings, **environment}
        self._child = subprocess.Popen(
            (sys.executable, "-m", "benchmarks.harness.worker", module),
            cwd=ROOT, env=known, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1,
        )  # fmt: skip

    def call(self, repeat: int) -> float:
        """Call the case ``repeat`` times; return the CPU seconds of one call."""
        self._child.stdin.write(f"{repeat}\n")
        answer = self._child.stdout.readline()
        if not answer:
            raise RuntimeError("The measured process has ended. Its output contains the reason.")
        return float(answer)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._child.stdin.close()
        self._child.wait()
        self._child.stdout.close()


def main(module: str) -> None:
    """Prepare the case, and measure it for each line, which contains the number of calls."""
    answers = os.dup(1)
    os.dup2(2, 1)  # keep the output of pages out of the results
    case = import_module(module).prepare()
    case()
    gc.collect()
    gc.freeze()
    for line in sys.stdin:
        repeat = int(line)
        gc.collect()
        started = time.process_time()
        for _ in range(repeat):
            case()
        os.write(answers, f"{(time.process_time() - started) / repeat}\n".encode())


if __name__ == "__main__":
    main(sys.argv[1])
