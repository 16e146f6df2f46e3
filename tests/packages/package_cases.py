"""Each package of ``cases`` in a project of its own without SQL."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from uuid import uuid4

import pytest

from dynamo_single.table import get_table
from dynamo_single.table.redirects import UNGUARDED, VARIABLE
from tests.packages import page

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.usefixtures("table")
@pytest.mark.parametrize("case", page.cases(), ids=lambda case: case.package)
def test_package_does_what_its_case_says(case: page.Case) -> None:
    url = f"{str(get_table().settings.endpoint_url).replace('http', 'dynamodb', 1)}/t{uuid4().hex}?region=us-east-1"
    known = {name: value for name, value in os.environ.items() if not name.startswith(("DJANGO_", "DYNAMO_"))}
    done = subprocess.run(  # noqa: S603 - our own file
        [sys.executable, "-P", str(case.path)],  # a case may have its package's name
        cwd=ROOT,
        env={**known, VARIABLE: UNGUARDED, "DYNAMO_URL": url, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr[-3000:]


def test_page_is_that_of_the_cases() -> None:
    assert page.PAGE.read_text() == page.text(), "python -m tests.packages.page writes it"
