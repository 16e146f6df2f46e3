"""``manage.py dynamo_rebuild``: rewrite dependent items and attributes of stored objects."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from importlib import import_module
from typing import Any

from django.conf import settings
from django.core.management.base import CommandError, CommandParser

from dynamo_single.contrib.doctor.findings import Subject
from dynamo_single.contrib.doctor.walk import CORRECT_TEXT, REPAIR_ERRORS, Finding, repair_outcome, verify
from dynamo_single.costs import measure_requests
from dynamo_single.exceptions import StaleObject
from dynamo_single.management.base import TableCommand
from dynamo_single.management.commands.dynamo_verify import model_of
from dynamo_single.orm.effects.all_effects import effects_of
from dynamo_single.orm.items import decode
from dynamo_single.orm.reading import single
from dynamo_single.orm.rollout import shard_record
from dynamo_single.orm.write import move_references
from dynamo_single.table.flow import run
from dynamo_single.table.table import Table


class Command(TableCommand):
    """Rewrite wrong index keys, claims, folded and other copies, derived items and counters; delete no object."""

    help = (
        "Reads the whole table and writes missing or wrong derived items, such as index keys and copies. Run "
        "it after a new declaration or an interrupted write. You can interrupt and repeat it at any time."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        """Add the models and ``--rate``."""
        super().add_arguments(parser)
        parser.add_argument("models", nargs="*", metavar="APP.MODEL", help="these models' items, one walk for each")
        parser.add_argument("--rate", type=float, metavar="UNITS", help="the most read units a second")

    def run(self, table: Table, options: dict[str, Any]) -> None:
        """Rebuild, and report what was written and what could not be."""
        # Sessions are a model whose module is otherwise imported by the first HTTP request.
        import_module(settings.SESSION_ENGINE)
        if options["rate"] is not None and options["rate"] <= 0:
            raise CommandError("--rate is a number of read units a second, more than 0.")
        models = [model_of(label, table) for label in options["models"]] or [None]
        shard_record.check_owner(table)
        counts: Counter[str] = Counter()
        with measure_requests() as costs:
            for model in models:
                for finding in verify(table, model=model, rate=options["rate"], progress=self._progress(counts)):
                    self._mend(table, finding, counts)
                counts["walked"] += counts.pop("read", 0)
        if self.stderr.isatty():
            self.stderr.write("\r", ending="")
        summary = f"{counts['walked']} items read by {costs.requests} requests, {counts['written']} written again"
        if counts["left"]:
            raise CommandError(
                f"{summary}, {counts['left']} left. Correct them as the lines above describe, and run it again."
            )
        self.stdout.write(self.style.SUCCESS(f"{summary}."))

    def _mend(self, table: Table, finding: Finding, counts: Counter[str]) -> None:
        why = ""
        try:
            if finding.removal is not None:
                # A command that adds keys and copies must not delete an object whose parent is missing.
                outcome, why = "left", " manage.py dynamo_verify --repair deletes it."
            else:
                outcome = repair_outcome(finding, table)
            if outcome == "left" and finding.kind in ("copies due", "move due") and _completed(table, finding):
                outcome = "done"
        except REPAIR_ERRORS as error:
            # Continue with the rest of the table.
            outcome, why = "left", f" {error}"
        counts["written" if outcome == "done" else outcome] += 1
        said = {"done": "", "right": f" {CORRECT_TEXT}", "left": f" Not done.{why}"}[outcome]
        self.stdout.write(f"{finding}{said}")

    def _progress(self, counts: Counter[str]) -> Callable[[int], None]:
        def progress(read: int) -> None:
            counts["read"] = read
            if self.stderr.isatty():
                self.stderr.write(f"\r{counts['walked'] + read} items read, {counts['written']} written", ending="")

        return progress


def _completed(table: Table, finding: Finding) -> bool:
    """Update the copies of a marked source, or the references to a moved object, without a limit.

    Returns ``False`` if another process changed the object.
    """
    item = run(single.get_item(table, finding.key))
    model = None if item is None else Subject.of(table.settings.alias, item).model
    if item is None or model is None:
        return False
    try:
        obj = decode.instance(model, item)
        for effect in effects_of(model):
            run(effect.complete(obj))
        run(move_references.finish_move(obj))
    except StaleObject:
        return False
    return True
