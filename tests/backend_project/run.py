"""Runs management commands as ``manage.py`` would, one after the other in one process.

Reads a JSON list of command lines and writes a JSON list of ``[exit code, standard output, standard error]``.
"""

import contextlib
import io
import json
import sys
import traceback

from django.core.management import ManagementUtility


def run(line: str) -> tuple[int, str, str]:
    """Run one command line."""
    code, out, err = 0, io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            ManagementUtility(["manage.py", *line.split()]).execute()
        except SystemExit as stopped:
            code = int(stopped.code or 0)
        except Exception:
            code = 1
            traceback.print_exc()
    return code, out.getvalue(), err.getvalue()


if __name__ == "__main__":
    print(json.dumps([run(line) for line in json.load(sys.stdin)]))
