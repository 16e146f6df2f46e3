"""Tasks that read and write models."""

from tests.packages.case import start

PACKAGE = "huey"
RESULT = "unchanged"

start("huey.contrib.djhuey", HUEY={"huey_class": "huey.MemoryHuey", "immediate": True, "name": "test"})

from huey.contrib.djhuey import db_task, task

from project.directory.models import Company


@db_task()
def rename(pk, name):
    company = Company.objects.get(pk=pk)
    company.name = name
    company.save()
    return company.name


@task()
def add(name):
    return Company.objects.create(name=name).pk


pk = add("Acme").get()
assert rename(pk, "Newer").get() == "Newer"
assert Company.objects.get(pk=pk).name == "Newer"
