"""Tasks that create companies, whose names show which tasks have run."""

from __future__ import annotations

import os
import signal
import time
from typing import Any

from django.tasks import task

from project.directory.models import Company


@task
def add(name: str, *, number: float = 0) -> list[Any]:
    """Create a company, and return the argument."""
    Company.objects.create(name=name)
    return [name, number]


@task
async def add_async(name: str) -> str:
    """Create a company in an event loop."""
    await Company.objects.acreate(name=name)
    return name


@task(takes_context=True)
def fail(context: Any, times: int) -> int:
    """Raise an error in the first attempts."""
    if context.attempt <= times:
        raise ValueError(f"attempt {context.attempt}")
    return int(context.attempt)


@task(takes_context=True)
def hang(context: Any, name: str, attempts: int, seconds: float = 60) -> None:
    """Create a company, and take very long in the first attempts."""
    Company.objects.create(name=f"{name} {context.attempt}")
    if context.attempt <= attempts:
        time.sleep(seconds)


@task
def end_process() -> None:
    """End the worker as the kernel does if memory is short."""
    os.kill(os.getpid(), signal.SIGKILL)


@task
def too_large() -> str:
    """Return more than an item can store."""
    return "x" * 500_000


@task
def fail_at_length(argument: str) -> None:
    """Raise an error with a long text, outside ASCII."""
    raise ValueError("é" * 50_000)


@task
def leave() -> None:
    """Raise ``SystemExit``."""
    raise SystemExit(3)
