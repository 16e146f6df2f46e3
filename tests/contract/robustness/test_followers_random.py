"""Chains of dependent values: copies in counters, keys, unique values and derived items, with random writes.

After any rejected write, the table is consistent: ``verify()`` does not find a problem.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.db.models import F, Q, UniqueConstraint

from dynamo_single import models, transactions
from dynamo_single.exceptions import DynamoSingleError
from dynamo_single.table import Table
from tests.contract.clubs import items
from tests.contract.robustness.crashing import Verifier
from tests.deep import examples
from tests.unit.declaring import declare, forgotten

pytestmark = pytest.mark.usefixtures("table")

RUNS = examples(2, 12)
STEPS = examples(40, 200)
PKS = ("1", "2")


@pytest.fixture(scope="module")
def declared() -> Iterator[dict[str, Any]]:
    """Declare jobs of desks and of clerks, with slips; each contains the others' attributes."""
    with forgotten():
        clerk = declare(
            "Scribe",
            ("SCRIBE#{scribe_id}", "#METADATA"),
            scribe_id=models.UnicodeAttribute(),
            name=models.UnicodeAttribute(),
            jobs=models.Children("Deed", field="scribe"),
            named=models.CounterAttribute("jobs", condition=Q(scribe_name="a")),
            hot=models.CounterAttribute("jobs", condition=Q(bureau_state="open", rank__gte=2)),
        )
        desk = declare(
            "Bureau",
            ("BUREAU#{bureau_id}", "#METADATA"),
            {"open": models.IndexKey("gs1", "BUREAUS", "{bureau_id}", condition=Q(state="open"))},
            bases=(models.SoftDeleteModel,),
            bureau_id=models.UnicodeAttribute(),
            state=models.UnicodeAttribute(default="open"),
            jobs=models.Children("Deed", field="bureau", cascade=True),
            active=models.CounterAttribute("jobs", condition=Q(bureau_state="open")),
            late=models.CounterAttribute("jobs", condition=Q(scribe_name="b") | Q(data__kind=1)),
        )
        seal = declare(
            "Seal",
            ("SEAL#{seal_id}", "#METADATA"),
            seal_id=models.UnicodeAttribute(),
            deed=models.ReferenceAttribute("catalog.Deed", on_delete=models.DO_NOTHING),
            said=models.UnicodeAttribute(),
            derived_by="deed",
        )

        def seals(self: Any) -> list[Any]:
            said = f"{self.scribe_name} {self.rank} {self.kind} {self.updated_at}"
            return [seal(seal_id=self.pk, deed_id=self.pk, said=said)] if self.rank else []

        job = declare(
            "Deed",
            ("BUREAU#{bureau_id}", "DEED#{deed_id}"),
            {
                "by_scribe": models.IndexKey("gs1", "DEEDS#{scribe_id}", "{deed_id}#{bureau_id}"),
                "queue": models.IndexKey(
                    "gs2", "QUEUE#{scribe_name}", "{kind:last}#{bureau_id}#{deed_id}", condition=Q(bureau_state="open")
                ),
            },
            bases=(models.SoftDeleteModel, models.TimestampedModel),
            bureau=models.ReferenceAttribute(desk, on_delete=models.DO_NOTHING),
            deed_id=models.UnicodeAttribute(),
            scribe=models.ReferenceAttribute(clerk, null=True, on_delete=models.SET_NULL),
            bureau_state=models.CopiedAttribute("bureau", "state"),
            scribe_name=models.CopiedAttribute("scribe", "name"),
            rank=models.IntegerAttribute(default=0),
            code=models.UnicodeAttribute(null=True),
            data=models.MapAttribute(default=dict),
            kind=models.ExtractedAttribute("data__kind", output=models.IntegerAttribute()),
            slips=models.Children("Codicil"),
            hot_slips=models.CounterAttribute("slips", condition=Q(rank__gte=2)),
            derived_from=("scribe_name", "rank", "kind", "updated_at"),
            derived_objects=seals,
            options={
                "constraints": [
                    UniqueConstraint(fields=["code"], condition=Q(scribe_name="a") | Q(data__kind=1), name="one"),
                    UniqueConstraint(fields=["bureau", "bureau_state", "code"], name="each"),
                ]
            },
        )
        slip = declare(
            "Codicil",
            ("CODICIL#{codicil_id}", "#METADATA"),
            {
                "by_deed": models.IndexKey("gs1", "CODICILS#{deed_id}", "{updated_at}#{codicil_id}"),
                "hot": models.IndexKey("gs2", "HOT", "{rank}#{updated_at}#{codicil_id}", condition=Q(rank__gte=2)),
            },
            bases=(models.TimestampedModel,),
            codicil_id=models.UnicodeAttribute(),
            deed=models.ReferenceAttribute(job, on_delete=models.CASCADE),
            rank=models.CopiedAttribute("deed", "rank"),
            text=models.UnicodeAttribute(default=""),
        )
        yield {"clerk": clerk, "desk": desk, "job": job, "slip": slip}


class World:
    """The writes, whose object may be missing, or which may be invalid."""

    def __init__(self, seed: int, declared: dict[str, Any]) -> None:
        self.random = random.Random(seed)
        self.clerk, self.desk, self.job, self.slip = (declared[each] for each in ("clerk", "desk", "job", "slip"))
        for pk in PKS:
            self.clerk.objects.create(pk=pk, name="a")
            self.desk.objects.create(pk=pk)
        for number in range(3):
            job = self.job.objects.create(bureau_id="1", deed_id=str(number), scribe_id="1")
            self.slip.objects.create(codicil_id=str(number), deed=job)

    def step(self) -> None:
        """Run one of the writes."""
        steps: list[Callable[[], object]] = [
            *(self.create_job, self.create_job, self.create_slip, self.set_state, self.rename, self.replace_clerk),
            *(self.update_job, self.update_jobs, self.raise_rank, self.set_place, self.save_job, self.bulk_update),
            *(self.bin_job, self.restore_job, self.bin_desk, self.restore_desk, self.move_job, self.move_desk),
            *(self.update_slip, self.move_slip, self.delete_slip, self.write_block, self.write_sources),
        ]
        self.random.choice(steps)()

    def one(self, *of: Any) -> Any:
        return self.random.choice(of)

    @property
    def desk_pk(self) -> str:
        return str(self.one(*PKS))

    @property
    def job_pk(self) -> str:
        return f"{self.desk_pk}~~{self.random.randrange(5)}"

    @property
    def some_job(self) -> Any:
        return self.job.objects.filter(pk=self.job_pk)

    @property
    def some_slip(self) -> Any:
        return self.slip.objects.filter(pk=str(self.random.randrange(3)))

    def values(self) -> dict[str, Any]:
        return {"rank": self.random.randrange(4), "scribe_id": self.one(None, *PKS), "code": self.one(None, "x", "y")}

    def create_job(self) -> None:
        self.job.objects.create(pk=self.job_pk, data=self.one({}, {"kind": 1}, {"kind": 2}), **self.values())

    def create_slip(self) -> None:
        self.slip.objects.create(codicil_id=str(self.random.randrange(3)), deed=self.some_job.get())

    def set_state(self) -> None:
        self.desk.objects.filter(pk=self.desk_pk).update(state=self.one("open", "shut"))

    def rename(self) -> None:
        clerk = self.clerk.objects.get(pk=self.desk_pk)
        clerk.name = self.one("a", "b")
        clerk.save()

    def replace_clerk(self) -> None:
        pk = self.desk_pk
        self.clerk.objects.filter(pk=pk).delete()
        self.clerk.objects.create(pk=pk, name=self.one("a", "b"))

    def update_job(self) -> None:
        self.some_job.update(**self.values())

    def update_jobs(self) -> None:
        self.job.objects.filter(bureau=self.desk_pk).update(rank=self.random.randrange(4))

    def raise_rank(self) -> None:
        self.some_job.update(rank=F("rank") + 1)

    def set_place(self) -> None:
        self.some_job.update(data__kind=self.one(1, 2, None))

    def save_job(self) -> None:
        job = self.some_job.get()
        job.data, job.code = self.one({}, {"kind": 1}), self.one(None, "x")
        job.save()

    def bulk_update(self) -> None:
        jobs = [*self.job.objects.filter(bureau=self.desk_pk)]
        for job in jobs:
            job.rank, job.scribe_id = self.random.randrange(4), self.one(None, *PKS)
        self.job.objects.bulk_update(jobs, ["rank", "scribe"])

    def bin_job(self) -> None:
        self.some_job.delete()

    def restore_job(self) -> None:
        self.job.all_objects.get(pk=self.job_pk).restore()

    def bin_desk(self) -> None:
        self.desk.objects.filter(pk=self.desk_pk).delete()

    def restore_desk(self) -> None:
        self.desk.all_objects.get(pk=self.desk_pk).restore()

    def move_job(self) -> None:
        self.some_job.get().move_tree(deed_id=str(self.random.randrange(5)))

    def move_desk(self) -> None:
        self.desk.all_objects.get(pk="1").move_tree(bureau_id="3")
        self.desk.all_objects.get(pk="3").move_tree(bureau_id="1")

    def update_slip(self) -> None:
        self.some_slip.update(text=str(self.random.random()))

    def move_slip(self) -> None:
        self.some_slip.update(deed=self.some_job.get())

    def delete_slip(self) -> None:
        self.some_slip.delete()

    def write_block(self) -> None:
        with transactions.atomic():
            for number in range(3):
                self.job.objects.filter(pk=f"1~~{number}").update(**self.values(), data=self.one({}, {"kind": 1}))

    def write_sources(self) -> None:
        with transactions.atomic():
            self.set_state()


@pytest.mark.parametrize("seed", range(RUNS))
def test_everything_follows(table: Table, seed: int, declared: dict[str, Any]) -> None:
    world, findings = World(seed, declared), Verifier()
    refused = 0
    for _ in range(STEPS):
        try:
            world.step()
        except DynamoSingleError:
            refused += 1
        assert [str(finding) for finding in findings(items(table))] == []
    assert refused < STEPS / 2
