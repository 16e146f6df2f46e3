"""Forks children that have imported what most of them need: see ``tests.children``. Started with a socket's address.

A second argument is a settings module of a project, which is the current folder: children find the apps imported that
the project did not write itself.
"""

from __future__ import annotations

import atexit
import gc
import importlib
import io
import json
import os
import runpy
import select
import signal
import socket
import sys
import threading
import tokenize
import traceback
import types
from contextlib import suppress
from pathlib import Path
from typing import Any, NoReturn

#: Modules without settings of a project that almost every child imports.
MODULES = (
    "doctest",
    "encodings.idna",
    "environ",
    "httptools",
    "multiprocessing.pool",
    "multiprocessing.popen_fork",
    "multiprocessing.sharedctypes",
    "pytest",
    "simplejson",
    "sqlite3",
    "accounts.apps",
    "dynamo_single.contrib.accounts.conf",
    "dynamo_single.contrib.accounts.validators",
    "django.conf.urls",
    "django.contrib.admin",
    "django.contrib.admin.apps",
    "django.contrib.admin.templatetags.admin_list",
    "django.contrib.admin.templatetags.admin_modify",
    "django.contrib.admin.templatetags.log",
    "django.contrib.auth.apps",
    "django.contrib.auth.hashers",
    "django.contrib.auth.password_validation",
    "django.contrib.auth.tokens",
    "django.contrib.auth.validators",
    "django.contrib.contenttypes.apps",
    "django.contrib.messages.apps",
    "django.contrib.messages.middleware",
    "django.contrib.sessions.middleware",
    "django.contrib.sites.shortcuts",
    "django.contrib.staticfiles.apps",
    "django.contrib.staticfiles.handlers",
    "django.core.cache.backends.db",
    "django.core.cache.backends.locmem",
    "django.core.management.commands.check",
    "django.core.management.commands.createcachetable",
    "django.core.management.commands.flush",
    "django.core.management.commands.loaddata",
    "django.core.management.commands.test",
    "django.core.serializers.jsonl",
    "django.core.serializers.pyyaml",
    "django.core.serializers.xml_serializer",
    "django.db.backends.sqlite3.base",
    "django.middleware.clickjacking",
    "django.middleware.common",
    "django.middleware.csrf",
    "django.middleware.security",
    "django.templatetags.cache",
    "django.templatetags.l10n",
    "django.templatetags.tz",
    "django.test.runner",
    "django.urls",
    "django.utils.translation.reloader",
    "django.views.csrf",
    "django.views.defaults",
    "dynamo_single.admin.apps",
    "dynamo_single.admin.forms",
    "dynamo_single.apps",
    "dynamo_single.backend.base",
    "dynamo_single.backend.compiler",
    "dynamo_single.backend.migration_record",
    "dynamo_single.backend.sql_transactions",
    "dynamo_single.cache",
    "dynamo_single.checks.admin",
    "dynamo_single.checks.migrations",
    "dynamo_single.checks.references",
    "dynamo_single.checks.secrets",
    "dynamo_single.checks.settings",
    "dynamo_single.test_tables.hooks",
    "dynamo_single.test_tables.tables",
    "dynamo_single.keys",
    "dynamo_single.management.base",
    "dynamo_single.management.commands.loaddata",
    "dynamo_single.management.commands.makemigrations",
    "dynamo_single.management.commands.migrate",
    "dynamo_single.management.commands.test",
    "dynamo_single.middleware",
    "dynamo_single.migrations",
    "dynamo_single.orm.effects.django_on_commit",
    "dynamo_single.orm.rollout.shard_record",
    "dynamo_single.orm.model.async_methods",
    "dynamo_single.orm.model.metaclass",
    "dynamo_single.orm.model.pynamodb",
    "dynamo_single.orm.model.validation",
    "dynamo_single.orm.query.manager",
    "dynamo_single.orm.query.many_to_many",
    "dynamo_single.orm.query.queryset",
    "dynamo_single.orm.reading.page",
    "dynamo_single.orm.results.pages",
    "dynamo_single.orm.results.rows",
    "dynamo_single.orm.write.create",
    "dynamo_single.orm.write.delete",
    "dynamo_single.orm.write.batch_transactions",
    "dynamo_single.orm.write.move",
    "dynamo_single.orm.write.queryset_update",
    "dynamo_single.table.http.botocore_client",
    "dynamo_single.table.http.credentials",
    "dynamo_single.testing",
    "dynamo_single.transactions",
)


#: Further imports of projects with this repository's apps, once they have settings; without other models.
OF_PROJECTS = (
    "dynamo_single.contrib.accounts.backends",
    "dynamo_single.contrib.accounts.checks",
    "django.contrib.auth.middleware",
    "django.contrib.auth.views",
    "django.contrib.contenttypes.views",
    "django.contrib.sessions.backends.db",
    "dynamo_single.admin.batch_actions.models",
    "dynamo_single.admin.batch_actions.views",
    "dynamo_single.admin.log",
    "dynamo_single.checks.keys",
    "dynamo_single.checks.models",
)


def main() -> NoReturn:
    """Respond until the standard input is closed, when no process can send requests."""
    address, *projects = sys.argv[1:]
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(address)
    listener.listen()
    # Requests from here on wait for the remaining imports.
    print("ready", flush=True)
    for name in MODULES:
        importlib.import_module(name)
    # Made once in a process when it is first used, and the same in each.
    importlib.import_module("dynamo_single.table.http.credentials").new_session()
    list(tokenize.generate_tokens(io.StringIO("1").readline))
    for settings in projects:
        _prepare(settings)
    configured = importlib.import_module("django.conf").settings.configured
    assert not configured, "A child would have the settings of the server."
    gc.collect()
    gc.freeze()
    # A child ends before what it makes is worth looking through: see tests/conftest.py.
    gc.set_threshold(200_000, 20, 20)
    wanted = _serve(listener)
    # From here on this is a child.
    _become(wanted)


def _prepare(settings: str) -> None:
    """Import the apps that a project has installed, and forget the project: a child begins with its own settings.

    No app is ``ready()`` here. Like a new interpreter, a child fills the registry of apps from its settings, and finds
    the imported modules of models and of the admin.
    """
    registry = importlib.import_module("django.apps.registry")
    conf = importlib.import_module("django.conf")
    installed = importlib.import_module(settings).INSTALLED_APPS
    os.environ["DJANGO_SETTINGS_MODULE"] = settings
    configs = [registry.AppConfig.create(name) for name in installed]
    for config in configs:
        config.ready = lambda: None
    registry.apps.populate(configs)
    for name in OF_PROJECTS:
        importlib.import_module(name)
    importlib.import_module("django.contrib.admin").autodiscover()
    # From here on, the child resets the state, first everything derived from its settings.
    changed = importlib.import_module("django.core.signals").setting_changed
    for name in filter(str.isupper, dir(conf.settings)):
        changed.send(sender=None, setting=name, value=getattr(conf.settings, name), enter=False)
    handlers = importlib.import_module("django.utils.connection").BaseConnectionHandler
    gc.unfreeze()  # frozen objects are not listed
    for handler in gc.get_objects():
        if issubclass(type(handler), handlers):  # a check of its type would evaluate a lazy object
            handler.__init__()
            vars(handler).pop("settings", None)
    here = f"{Path.cwd()}{os.sep}"
    own = [name for name, module in sys.modules.items() if (getattr(module, "__file__", None) or "").startswith(here)]
    for name in own:
        del sys.modules[name]
    for config in configs:
        models = config.module.__name__ in own and registry.apps.all_models.pop(config.label)
        assert not models, f"{config.label} has models of its own, which children would know."
    registry.apps.app_configs.clear()
    registry.apps.apps_ready = registry.apps.models_ready = registry.apps.ready = registry.apps.loading = False
    registry.apps.ready_event.clear()
    registry.apps.clear_cache()
    conf.settings._wrapped = conf.empty


def _serve(listener: socket.socket) -> dict[str, Any]:
    """Fork for each connection, and run its request in the child."""
    ended, ends = os.pipe()
    os.set_blocking(ends, False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(ends)
    running: dict[int, socket.socket] = {}
    while True:
        ready, _, _ = select.select([listener, ended, 0], [], [])
        if 0 in ready:
            os._exit(0)
        if ended in ready:
            os.read(ended, 1024)
            _tell(running)
        if listener in ready:
            connection, _ = listener.accept()
            wanted, streams = _read(connection)
            child = os.fork()
            if not child:
                signal.set_wakeup_fd(-1)
                signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                for each in (listener, connection, *running.values()):
                    each.close()
                os.close(ended)
                os.close(ends)
                for number, stream in enumerate(streams):
                    os.dup2(stream, number)
                    os.close(stream)
                return wanted
            for stream in streams:
                os.close(stream)
            connection.sendall(b"%d\n" % child)
            running[child] = connection


def _read(connection: socket.socket) -> tuple[dict[str, Any], list[int]]:
    _, streams, _, _ = socket.recv_fds(connection, 1, 3)
    text = b""
    while not text.endswith(b"\n"):
        text += connection.recv(1 << 16)
    return json.loads(text), streams


def _tell(running: dict[int, socket.socket]) -> None:
    """Send the exit codes of children to their waiting callers."""
    while running:
        child, status = os.waitpid(-1, os.WNOHANG)
        if not child:
            return
        with running.pop(child) as connection, suppress(BrokenPipeError):
            connection.sendall(b"%d\n" % os.waitstatus_to_exitcode(status))


def _become(wanted: dict[str, Any]) -> NoReturn:
    """Become the Python process of this command line, folder and environment."""
    inherited = {"", str(Path(__file__).parent), str(Path.cwd()), *os.environ.get("PYTHONPATH", "").split(os.pathsep)}
    if wanted.get("session"):
        os.setsid()
    os.environ.clear()
    os.environ.update(wanted["env"])
    os.chdir(wanted["cwd"])
    sys.path[:] = [path for path in sys.path if path not in inherited]
    sys.path[:0] = [path for path in os.environ.get("PYTHONPATH", "").split(os.pathsep) if path]
    sys.dont_write_bytecode = bool(os.environ.get("PYTHONDONTWRITEBYTECODE"))
    importlib.invalidate_caches()
    # Values that modules read from the environment at import.
    importlib.import_module("dynamo_single.table.redirects").inherit()
    code = 0
    try:
        _run(*wanted["arguments"])
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else int(end.code is not None)
        if isinstance(end.code, str):
            print(end.code, file=sys.stderr)
    except BaseException:
        traceback.print_exc()
        code = 1
    # The end of an interpreter without destroying every module.
    threading._shutdown()
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        with suppress(BrokenPipeError, ValueError):
            stream.flush()
    os._exit(code & 0xFF)


def _run(what: str, *arguments: str) -> None:
    if what == "-c":
        program, *further = arguments
        main = types.ModuleType("__main__")
        sys.modules["__main__"] = main
        sys.argv[:] = ["-c", *further]
        sys.path.insert(0, "")
        exec(compile(program, "<string>", "exec"), main.__dict__)  # noqa: S102 - what Python does
    elif what == "-m":
        module, *further = arguments
        sys.argv[:] = [module, *further]
        sys.path.insert(0, str(Path.cwd()))
        runpy.run_module(module, run_name="__main__", alter_sys=True)
    else:
        sys.argv[:] = [what, *arguments]
        sys.path.insert(0, str(Path(what).resolve().parent))
        runpy.run_path(what, run_name="__main__")


if __name__ == "__main__":
    main()
