"""Runs the tests in a browser: ``python -m tests.browser.run``, with pytest's arguments.

The tests search the path for Chromium (or use ``CHROMIUM``), and install it with apt-get if possible. Otherwise, they
are skipped with a message.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
ROOT = Path(__file__).resolve().parents[2]
#: How long apt-get may take, in seconds; without a network it gives up before.
PATIENCE = 900
_ONCE = ("-q", "-o", "Acquire::Retries=0", "-o", "Acquire::http::Timeout=20", "-o", "Acquire::https::Timeout=20")


def chromium() -> str | None:
    """Return the path of Chromium; ``None`` if it is not installed."""
    named = os.environ.get("CHROMIUM")
    return shutil.which(named) if named else next(filter(None, map(shutil.which, NAMES)), None)


def install() -> None:
    """Install Debian's Chromium, if the user may and there is a network."""
    apt = shutil.which("apt-get")
    if apt is None or os.geteuid() != 0:
        return
    print("Installing Chromium", flush=True)
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    for command in (("update",), ("install", "-y", "--no-install-recommends", "chromium", "fonts-dejavu-core")):
        try:
            subprocess.run([apt, *_ONCE, *command], env=environment, capture_output=True, timeout=PATIENCE, check=True)
        except (subprocess.SubprocessError, OSError) as error:
            print(f"apt-get {command[0]}: {error}", flush=True)
            return


def main(arguments: list[str]) -> int:
    """Run the tests, or print why they are skipped."""
    named = os.environ.get("CHROMIUM")
    if named and chromium() is None:
        print(f"CHROMIUM is {named}, which is no program.")
        return 2
    if chromium() is None:
        install()
    found = chromium()
    if found is None:
        print("SKIPPED: the tests in a browser. There is no Chromium here, and none can be installed.")
        return 0
    command = [sys.executable, "-m", "pytest", "-q", "tests/browser", *arguments]
    return subprocess.run(command, cwd=ROOT, env={**os.environ, "TEST_BROWSER": found}, check=False).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
