"""Backfill the items of a table in use: in parallel, rate-limited and resumable; live traffic takes precedence."""

from dynamo_single.evolution.backfill.checkpoints import Failure, delete_checkpoints
from dynamo_single.evolution.backfill.items import ensure_indexes
from dynamo_single.evolution.backfill.rehearsal import Rehearsal, Sample, SimulatedItems, rehearse
from dynamo_single.evolution.backfill.report import Estimate, estimate
from dynamo_single.evolution.backfill.run import run_work
from dynamo_single.evolution.backfill.work import Options, Report, Task, Work
from dynamo_single.orm.requests.actions import type_condition

__all__ = [
    "Estimate",
    "Failure",
    "Options",
    "Rehearsal",
    "Report",
    "Sample",
    "SimulatedItems",
    "Task",
    "Work",
    "delete_checkpoints",
    "ensure_indexes",
    "estimate",
    "rehearse",
    "run_work",
    "type_condition",
]
