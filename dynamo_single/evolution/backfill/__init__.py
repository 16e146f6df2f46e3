"""Work on the items of a table while it is in use: in parallel, at a given pace, resumable, after live traffic."""

from dynamo_single.evolution.backfill.checkpoints import Failure, begun, forget
from dynamo_single.evolution.backfill.items import ensure_indexes
from dynamo_single.evolution.backfill.rehearsal import Imagined, Rehearsal, Sample, rehearse
from dynamo_single.evolution.backfill.report import Estimate, Report, estimate
from dynamo_single.evolution.backfill.run import carry_out
from dynamo_single.evolution.backfill.work import Options, Progress, Task, Work
from dynamo_single.orm.requests.actions import of_type

__all__ = [
    "Estimate",
    "Failure",
    "Imagined",
    "Options",
    "Progress",
    "Rehearsal",
    "Report",
    "Sample",
    "Task",
    "Work",
    "begun",
    "carry_out",
    "ensure_indexes",
    "estimate",
    "forget",
    "of_type",
    "rehearse",
]
