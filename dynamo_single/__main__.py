"""``python -m dynamo_single startproject NAME``: write a project that runs.

It is Django's ``startproject`` with the template in ``project_template``. It does not send requests, and it does not
change files that exist.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Final

from django.core.management import execute_from_command_line

_PROGRAM: Final = "python -m dynamo_single"
_TEMPLATE: Final = Path(__file__).parent / "project_template"


def main(arguments: list[str]) -> None:
    """Run ``startproject``; print the usage and exit with status 2 if the arguments name something else."""
    if arguments[:1] != ["startproject"]:
        sys.stderr.write(f"usage: {_PROGRAM} startproject NAME [directory]\n")
        sys.exit(2)
    name, *_ = [each for each in arguments[1:] if not each.startswith("-")] or [""]
    if name in {path.name for path in _TEMPLATE.iterdir() if path.is_dir()}:
        sys.exit(f"Cannot name the project {name!r}: it contains an app with this name. Choose another name.")
    execute_from_command_line([_PROGRAM, *arguments, f"--template={_TEMPLATE}", "--name=README.md"])


if __name__ == "__main__":
    main(sys.argv[1:])
