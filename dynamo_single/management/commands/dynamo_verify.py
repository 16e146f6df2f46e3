"""``manage.py dynamo_verify``: check whether the items of the table are consistent, and repair them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from importlib import import_module
from typing import Any

from django.apps import apps
from django.conf import settings
from django.core.management.base import CommandError, CommandParser

from dynamo_single.contrib.doctor.removal import BATCH_SIZE, delete_orphans
from dynamo_single.contrib.doctor.walk import CORRECT_TEXT, REPAIR_ERRORS, Finding, Outcome, repair_outcome, verify
from dynamo_single.costs import measure_requests
from dynamo_single.management.base import TableCommand
from dynamo_single.orm.rollout import shard_record
from dynamo_single.orm.schema import registry
from dynamo_single.table.table import Table


class Command(TableCommand):
    """Find inconsistencies that an interrupted write, another program or a new declaration has left."""

    help = (
        "Reads the whole table and reports inconsistent items: unique claims, index keys, derived items. "
        "Exits with status 1 if any inconsistency remains."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        """Add ``--repair``, ``--model`` and ``--rate``."""
        super().add_arguments(parser)
        parser.add_argument("--repair", action="store_true", help="repair what can be repaired")
        parser.add_argument("--model", metavar="APP.MODEL", help="look at the items and claims of one model only")
        parser.add_argument("--rate", type=float, metavar="UNITS", help="the most read units a second")

    def run(self, table: Table, options: dict[str, Any]) -> None:
        """Print each finding with its outcome, and a summary."""
        # Sessions are a model whose module is otherwise imported by the first HTTP request.
        import_module(settings.SESSION_ENGINE)
        if options["rate"] is not None and options["rate"] <= 0:
            raise CommandError("--rate is a number of read units a second, more than 0.")
        shard_record.check_owner(table)
        counts: Counter[str] = Counter()
        with measure_requests() as costs:
            model = model_of(options["model"], table)
            found = verify(
                table,
                model=model,
                rate=options["rate"],
                progress=self._progress(counts),
            )
            held: list[Finding] = []
            for finding in found:
                if options["repair"] and finding.removal is not None:
                    held.append(finding)
                    if len(held) == BATCH_SIZE:
                        self._remove(table, held, options["rate"], counts)
                    continue
                outcome, why = self._repaired(table, finding) if options["repair"] else (None, "")
                self._count(finding, outcome, why, counts)
            self._remove(table, held, options["rate"], counts)
        if self.stderr.isatty():
            self.stderr.write("\r", ending="")
        summary = f"{counts['read']} items read by {costs.requests} requests, {counts['found']} findings"
        summary += f", {counts['repaired']} repaired." if options["repair"] else "."
        if counts["found"] > counts["repaired"]:
            raise CommandError(f"{summary}{'' if options['repair'] else ' --repair repairs what can be.'}")
        self.stdout.write(self.style.SUCCESS(summary))

    def _remove(self, table: Table, held: list[Finding], rate: float | None, counts: Counter[str]) -> None:
        """Delete the orphans of many findings together."""
        for finding, why in zip(held, delete_orphans(table, held, rate), strict=True):
            self._count(finding, "left" if why else "done", why, counts)
        held.clear()

    def _count(self, finding: Finding, outcome: Outcome | None, why: str, counts: Counter[str]) -> None:
        counts["found"] += outcome != "right"
        counts["repaired"] += outcome == "done"
        self._tell(finding, outcome, why)

    def _repaired(self, table: Table, finding: Finding) -> tuple[Outcome, str]:
        try:
            return repair_outcome(finding, table), "another process changed it."
        except REPAIR_ERRORS as error:
            return "left", str(error)  # continue with the rest of the table

    def _tell(self, finding: Finding, outcome: Outcome | None, why: str) -> None:
        said = {"done": " Repaired.", "right": f" {CORRECT_TEXT}", "left": f" Not repaired: {why}"}
        needs_somebody = "" if finding.is_repairable else " This finding requires a decision."
        self.stdout.write(f"{finding}{needs_somebody or said.get(outcome or '', '')}")

    def _progress(self, counts: Counter[str]) -> Callable[[int], None]:
        def progress(read: int) -> None:
            counts["read"] = read
            if self.stderr.isatty():
                self.stderr.write(f"\r{read} items read", ending="")

        return progress


def model_of(label: str | None, table: Table) -> Any:
    if label is None:
        return None
    try:
        model: Any = apps.get_model(label)
    except (LookupError, ValueError) as error:
        raise CommandError(f"--model {label}: {error}") from error
    known = [each for each in registry.all_models() if each._options.alias == table.settings.alias]
    if model._meta.concrete_model not in known:
        raise CommandError(f"--model {label} is not stored in the table of the alias {table.settings.alias!r}.")
    return model
