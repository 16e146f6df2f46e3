"""Run Django's own tests against our models, and compare the failures with the list.

``make test-django`` runs all apps, ``make test`` the fast ones. To run them manually, for the installed Django::

    python -m tests.upstream.run [--fast] [--write [--raise]] [APP ...]

``--write`` rewrites the list. It removes tests that pass, and keeps the reasons of listed failures. A new failure gets
the reason that ``proposals`` has for its error, or is not done yet. A reason may only lose tests, unless you pass
``--raise``. ``--figures`` prints a table with the tests of each app: how many pass, how many also pass if the app's own
``assertNumQueries`` counts requests, and how many fail, by kind of reason.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import django

from tests.upstream import expectations, source
from tests.upstream.catalogue import APPS
from tests.upstream.proposals import proposed

RELEASE = ".".join(map(str, django.VERSION[:2]))
OUTPUT = source.CACHE / "results" / RELEASE
#: How long one app may take, in seconds.
LIMIT = 900

Outcomes = dict[str, dict[str, Any]]


def run_app(app: str) -> Outcomes:
    """Run the tests of one app in a separate process; return their outcomes, and store the output next to them."""
    result, printed = OUTPUT / f"{app}.json", OUTPUT / f"{app}.txt"
    result.unlink(missing_ok=True)
    with printed.open("w") as output:
        command = [sys.executable, "-Wdefault", "-m", "tests.upstream.worker", app, str(result)]
        subprocess.run(
            command,
            cwd=source.ROOT,
            stdout=output,
            stderr=subprocess.STDOUT,
            timeout=LIMIT,
            check=False,
            env=os.environ | {"PYTHONPATH": str(source.ROOT)},
        )
    if not result.exists():
        raise SystemExit(f"{app} could not be run; {printed.relative_to(source.ROOT)} says why.")
    outcomes: Outcomes = json.loads(result.read_text())
    return outcomes


def run(apps: Sequence[str]) -> Outcomes:
    """Run the tests of several apps, two apps at a time, and return the outcomes."""
    source.tests_folder()
    OUTPUT.mkdir(parents=True, exist_ok=True)
    with ThreadPoolExecutor(2) as pool:
        return {name: outcome for outcomes in pool.map(run_app, apps) for name, outcome in outcomes.items()}


def failed(outcomes: Outcomes) -> list[str]:
    """Return the tests that failed."""
    return sorted(name for name, each in outcomes.items() if each["outcome"] == "failed")


def compare(outcomes: Outcomes, listed: expectations.Expectations, apps: Sequence[str]) -> list[str]:
    """Return the differences from the list: unlisted failures, and listed tests that did not fail."""
    expected = {name for name in listed.tests[RELEASE] if expectations.app_of(name) in apps}
    found = set(failed(outcomes))
    new = [f"fails: {name}\n    {outcomes[name]['error']}" for name in sorted(found - expected)]
    gone = [f"is listed and does not fail: {name}" for name in sorted(expected - found)]
    return new + gone


def rewrite(outcomes: Outcomes, listed: expectations.Expectations, apps: Sequence[str], *, more: bool) -> None:
    """Rewrite the list, and keep its reasons."""
    reasons = {name: proposed(outcomes[name]["error"]) or expectations.NOT_YET for name in failed(outcomes)}
    listed.update(RELEASE, apps, reasons)
    counts = listed.counts()
    if not more and (grown := listed.grown()):
        raise SystemExit("\n".join(["A reason may only lose tests; --raise says otherwise.", *grown]))
    expectations.FILE.write_text(expectations.write(listed, counts), encoding="utf-8")


def figures(outcomes: Outcomes, listed: expectations.Expectations) -> str:
    """Return the table of the apps."""
    rows = [("app", "run", "passed", "by requests", "skipped", "SQL itself", "decision", "not yet")]
    apps = sorted({expectations.app_of(name) for name in outcomes})
    for app in [*apps, "together"]:
        found = {name: each for name, each in outcomes.items() if app in (expectations.app_of(name), "together")}
        counted = Counter(each["outcome"] for each in found.values())
        kinds = Counter(listed.tests[RELEASE].get(name, "").split(" ")[0] for name in failed(found))
        strictly = sum(
            each["outcome"] == "passed" and all(number == sent for number, _, sent in each.get("queries", ()))
            for each in found.values()
        )
        numbers = len(found), counted["passed"], strictly, counted["skipped"], kinds["SQL"], kinds["Decision"]
        rows.append((app, *map(str, numbers), str(kinds["Not"])))
    return "\n".join(f"{app:24}" + "".join(f"{each:>13}" for each in rest) for app, *rest in rows)


def main(arguments: Sequence[str]) -> int:
    """Run the tests, then compare or rewrite the list; return 1 if the failures differ from the list."""
    parser = argparse.ArgumentParser(description="Run Django's own tests against our models.")
    parser.add_argument("apps", nargs="*", metavar="APP", help="apps; all of them if none is named")
    parser.add_argument("--fast", action="store_true", help="only the apps that run with `make test`")
    parser.add_argument("--write", action="store_true", help="rewrite the list")
    parser.add_argument("--raise", action="store_true", dest="more", help="let reasons have more tests than before")
    parser.add_argument("--figures", action="store_true", help="print the table of the apps")
    options = parser.parse_args(arguments)
    apps = options.apps or [name for name, app in APPS.items() if app.fast or not options.fast]
    started = time.monotonic()
    outcomes = run(apps)
    counted = Counter(each["outcome"] for each in outcomes.values())
    print(
        f"Django {django.get_version()}: {len(outcomes)} tests of {len(apps)} apps "
        f"in {time.monotonic() - started:.0f} s: "
        f"{counted['passed']} passed, {counted['failed']} failed, {counted['skipped']} skipped"
    )
    listed = expectations.read(expectations.FILE.read_text(encoding="utf-8"))
    if options.write:
        rewrite(outcomes, listed, apps, more=options.more)
    if options.figures:
        print(figures(outcomes, listed))
    if options.write:
        return 0
    different = compare(outcomes, listed, apps) + listed.grown()
    print("\n".join(different) or "As the list says.")
    return 1 if different else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
