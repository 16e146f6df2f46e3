"""The cost of a model's declaration at start-up: the hundredth takes as much as the tenth."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.deep import deep

ROOT = Path(__file__).resolve().parents[3]

_OURS = """
class Ours{number}(models.TimestampedModel, models.SoftDeleteModel):
    ours_id = models.IdAttribute()
    name = models.UnicodeAttribute(max_length=20)
    email = models.EmailAttribute(unique=True)
    number = models.IntegerAttribute(default=0)
    class Keys:
        primary = models.Key("OURS{number}#{{ours_id}}", "#METADATA")
        by_name = models.IndexKey("gs1", "OURS{number}", "{{name}}#{{ours_id}}")
"""
_DJANGO = """
class Django{number}(models.Model):
    created_at = models.DateTimeField(auto_now_add=True)
    updated_at = models.DateTimeField(auto_now=True)
    deleted_at = models.DateTimeField(null=True)
    deleted_with = models.CharField(max_length=20, null=True)
    django_id = models.CharField(primary_key=True, max_length=20)
    name = models.CharField(max_length=20)
    email = models.EmailField(unique=True)
    number = models.IntegerField(default=0)
"""
#: Prints the number of function calls during the import of an app's models.
_COUNTED = """
import sys
import django
from django.apps import AppConfig
from django.conf import settings
settings.configure(
    SECRET_KEY="none", DYNAMO_SINGLE={"default": "dynamodb:///single-table?region=eu-west-1"},
    DATABASES={"default": {"ENGINE": "dynamo_single.backend"}}, INSTALLED_APPS=["dynamo_single", "warm", "many"],
)
calls = 0

def note(frame, event, argument):
    global calls
    calls += event in ("call", "c_call")

def import_models(self, imported=AppConfig.import_models):
    sys.setprofile(note if self.name == "many" else None)
    imported(self)
    sys.setprofile(None)

AppConfig.import_models = import_models
django.setup()
print(calls)
"""


def calls(folder: Path, source: str, number: int) -> float:
    """Return the function calls per model while a new process imports ``number`` models."""
    library = "from dynamo_single import models\n" if source is _OURS else "from django.db import models\n"
    for app, numbers in (("warm", range(number, number + 2)), ("many", range(number))):
        (folder / app).mkdir(parents=True)
        (folder / app / "__init__.py").touch()
        text = library + "".join(source.format(number=each) for each in numbers)
        (folder / app / "models.py").write_text(text)
    child = subprocess.run(
        [sys.executable, "-"],
        input=_COUNTED, cwd=folder, env={"PYTHONPATH": str(ROOT)}, capture_output=True, text=True, check=True,
    )  # fmt: skip
    return int(child.stdout) / number


@pytest.mark.parametrize("many", [40, pytest.param(400, marks=deep)])
def test_models_take_as_much_whatever_their_number(tmp_path: Path, many: int) -> None:
    """No model looks at the ones before it."""
    assert calls(tmp_path / "many", _OURS, many) <= 1.05 * calls(tmp_path / "few", _OURS, 10)


def test_a_model_takes_at_most_three_of_djangos(tmp_path: Path) -> None:
    """The models have the same attributes, and additional keys."""
    assert calls(tmp_path / "ours", _OURS, 10) <= 3 * calls(tmp_path / "django", _DJANGO, 10)
