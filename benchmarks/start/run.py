"""What does it cost to start, and to send the first request?

``python -m benchmarks.start.run [--size SIZE] [--json FILE]`` starts Python again for each measurement, with
existing bytecode, and prints CPU: imports and ``django.setup()``, and the first GetItem after them, including the
creation of its client. These are the costs of a cold start on Lambda.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from string import Template
from urllib.parse import urlsplit

from benchmarks.harness.report import CONTROL, OURS, Report, Row, Size, main
from benchmarks.start.programs import DJANGO, GET, MANY, PROGRAMS
from dynamo_single.testing import local_engine

ROOT = Path(__file__).resolve().parents[2]
_MEASURED = """
import time
$setup
after = time.process_time()
$first
print(after, time.process_time() - after)
"""


def run(program: tuple[str, str], port: int) -> tuple[float, float]:
    """Return the CPU seconds of a new process for its setup and for its first request."""
    setup, first = program
    place = f"127.0.0.1:{port}"
    url = f"dynamodb://{place}/single-table?region=us-east-1"
    whole = Template(_MEASURED).substitute(setup=setup, first=first)
    code = Template(whole).substitute(url=url, endpoint=f"http://{place}")
    left_out = ("AWS_", "DJANGO_", "PYTHONDONTWRITEBYTECODE")  # without bytecode, Python would compile again
    known = {name: value for name, value in os.environ.items() if not name.startswith(left_out)}
    answer = subprocess.run(
        (sys.executable, "-c", code),
        cwd=ROOT, env=known, check=True, capture_output=True, text=True,
    ).stdout  # fmt: skip
    started, sent = answer.split()
    return float(started), float(sent)


def in_turns(programs: Mapping[str, tuple[str, str]], port: int, count: int) -> dict[str, list[tuple[float, float]]]:
    """Run each program once in each round, and start each round with another program."""
    names = list(programs)
    taken: dict[str, list[tuple[float, float]]] = {name: [] for name in names}
    for number in range(count):
        start = number % len(names)
        for name in names[start:] + names[:start]:
            taken[name].append(run(programs[name], port))
    return taken


def measure(size: Size) -> Report:
    """Measure the start, the first request, and both."""
    programs = {name: program for name, program in PROGRAMS.items() if name != "boto3" or find_spec("boto3")}
    programs[CONTROL] = programs[OURS]
    with local_engine() as table:
        port = urlsplit(table.settings.endpoint_url).port
        if size.name != "tiny":
            for program in (*programs.values(), *MANY.values()):  # writes the bytecode
                run(program, port)
        taken = in_turns(programs, port, size.rounds)
        many = in_turns(MANY, port, size.rounds)
        got = in_turns(GET, port, size.rounds)
    started = {name: [each[0] for each in found] for name, found in taken.items()}
    first = {name: [each[1] for each in found] for name, found in taken.items() if programs[name][1]}
    both = {name: [sum(each) for each in taken[name]] for name in first}
    client = "boto3" if "boto3" in programs else "botocore"
    rows = [
        Row("imports and setup", DJANGO, started),
        Row("with 100 models more", DJANGO, {name: [each[0] for each in found] for name, found in many.items()}),
        Row("the first get()", "PynamoDB", {name: [each[1] for each in found] for name, found in got.items()}),
        Row("the first request", client, first),
        Row("both", client, both),
    ]
    return Report("CPU of a start", "seconds", rows)


if __name__ == "__main__":
    main(__doc__, measure)
