"""Forked children behave like a new interpreter with the same command line."""

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
    """The output and the exit are the same."""
    (tmp_path / "program.py").write_text(program)
    command = {"-c": ["-c", program], "-m": ["-m", "program"], "a file": ["program.py"]}[how]
    ours = children.run([*command, "x"], cwd=tmp_path, env=ENVIRONMENT, input="a line\n")
    new = subprocess.run(  # noqa: S603 - programs of this file
        [sys.executable, *command, "x"], cwd=tmp_path, env=ENVIRONMENT, input="a line\n", capture_output=True, text=True
    )
    assert (ours.returncode, ours.stdout, ours.stderr) == (new.returncode, new.stdout, new.stderr)


def test_an_error_is_a_traceback(tmp_path: Path) -> None:
    """The child prints the error and exits with 1."""
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
    """The caller gets the error, and no process remains."""
    with pytest.raises(subprocess.TimeoutExpired):
        children.run(["-c", "import signal; signal.pause()"], cwd=tmp_path, env=ENVIRONMENT, timeout=0.01)
    with (tmp_path / "log").open("w") as log:
        running = children.Dialogue(["-c", "input()"], cwd=tmp_path, env=ENVIRONMENT, stderr=log)
    running.kill()
    assert running.close() == -9


def test_a_child_begins_a_session_where_it_shall(tmp_path: Path) -> None:
    """A signal to its group then reaches only this child."""
    with (tmp_path / "out").open("w+") as out, Path(os.devnull).open() as nothing:
        child = children.Child(
            ["-c", "import os; print(os.getsid(0) == os.getpid())"],
            cwd=tmp_path,
            env=ENVIRONMENT,
            stdin=nothing.fileno(),
            stdout=out.fileno(),
            stderr=out.fileno(),
            start_new_session=True,
        )
        assert child.wait() == 0
        assert child.poll() == 0
        out.seek(0)
        assert out.read() == "True\n"


SETTINGS = """
import os
from pathlib import Path

BASE_DIR = Path(__file__).resolve().parent
SECRET_KEY = os.environ.get("ONE", "0")
DATABASES = {"default": {"ENGINE": "dynamo_single.backend"}}
DYNAMO_SINGLE = {"default": f"dynamodb://127.0.0.1:800{SECRET_KEY}/notes?region=us-east-1"}
INSTALLED_APPS = [
    "dynamo_single.admin.apps.DynamoAdminConfig",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.messages",
    "dynamo_single",
    "dynamo_single.contrib.accounts",
    "accounts",
    "own",
]
AUTH_USER_MODEL = "accounts.User"
ROOT_URLCONF = "own.urls"
# Otherwise than those of the project that the server is prepared with.
CACHES = {"default": {"BACKEND": "django.core.cache.backends.locmem.LocMemCache", "LOCATION": SECRET_KEY}}
LANGUAGE_CODE, TIME_ZONE = {"0": ("en-us", "UTC"), "1": ("de", "Europe/Berlin")}[SECRET_KEY]
TEMPLATES = [{"BACKEND": "django.template.backends.django.DjangoTemplates", "DIRS": [SECRET_KEY], "APP_DIRS": True}]
STORAGES = {"default": {"BACKEND": "django.core.files.storage.FileSystemStorage", "OPTIONS": {"location": SECRET_KEY}}}
PASSWORD_HASHERS = {
    "0": ["django.contrib.auth.hashers.MD5PasswordHasher"],
    "1": ["django.contrib.auth.hashers.PBKDF2PasswordHasher"],
}[SECRET_KEY]
"""

#: The state of a project's process after its setup.
KNOWN = """
import django
from django.apps import apps

assert not apps.ready
django.setup()
from django.conf import settings
from django.contrib.admin import site
from django.contrib.auth import get_user_model, hashers
from django.core import checks, signals
from django.core.cache import caches
from django.core.files.storage import default_storage
from django.db import connections
from django.db.models import signals as of_models
from django.template import engines
from django.urls import reverse
from django.utils import timezone, translation
from dynamo_single.orm.schema import registry
from dynamo_single.table import get_table

print(settings.SECRET_KEY, settings.BASE_DIR, get_table().settings)
print(caches.settings, default_storage.location, engines["django"].dirs, connections["default"].settings_dict)
print(translation.gettext("yes"), timezone.get_current_timezone(), hashers.get_hasher().algorithm)
print([config.label for config in apps.get_app_configs()], get_user_model())
print([model._meta.label for model in apps.get_models()], sorted(map(str, apps.all_models["own"])))
print(sorted(model._meta.label for model in registry.all_models()))
print(sorted(model._meta.label for model in site._registry), reverse("admin:own_thing_changelist"))
print(sorted(f"{each.__module__}.{each.__name__}" for each in checks.registry.registry.get_checks(True)))
print([len(each.receivers) for each in (of_models.post_migrate, of_models.class_prepared, signals.setting_changed)])
print(sorted(str(each) for each in checks.run_checks()))
"""


MODEL = """

class {0}(models.Model):
    thing_id = models.IdAttribute()

    class Keys:
        primary = models.Key("{0}#{{thing_id}}", "#METADATA")
        everything = models.IndexKey("gs1", "{0}", "{{thing_id}}")
"""


ADMIN = """
from django.contrib import admin
from dynamo_single.admin import DynamoModelAdmin
from own.models import {0}

admin.site.register({0}, DynamoModelAdmin)
"""


def project(folder: Path, *names: str) -> Path:
    """A project with an app of its own that has these models."""
    app = folder / "own"
    app.mkdir(parents=True)
    (app / "__init__.py").touch()
    (app / "settings.py").write_text(SETTINGS)
    routes = "urlpatterns = [path('admin/', admin.site.urls)]"
    (app / "urls.py").write_text(f"from django.contrib import admin\nfrom django.urls import path\n\n{routes}\n")
    (app / "models.py").write_text("from dynamo_single import models\n" + "".join(map(MODEL.format, names)))
    (app / "admin.py").write_text("".join(map(ADMIN.format, names)))
    return folder


def test_children_of_a_prepared_server_know_what_others_know(tmp_path: Path) -> None:
    """Settings, apps, models, the admin, checks and receivers belong to the child's own project, once each."""
    prepared = children.Prepared(project(tmp_path / "first"), "own.settings")
    there = project(tmp_path / "second", "Thing")
    environment = {**ENVIRONMENT, "DJANGO_SETTINGS_MODULE": "own.settings", "PYTHONPATH": str(children.ROOT)}
    of_all, of_prepared = [
        children.run(["-c", KNOWN], cwd=there, env=environment, server=server, together=True).stdout
        for server in ("", prepared.address)
    ]
    prepared.end()
    assert "own.Thing" in of_all
    assert of_prepared == of_all
