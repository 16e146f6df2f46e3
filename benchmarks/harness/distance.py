"""A table with the latency of a network. Its settings and the app's settings use the proxy."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from urllib.parse import urlsplit

from django.conf import settings as django_settings
from django.test import override_settings
from msgspec.structs import replace

from benchmarks.harness.delay import HOST, delayed
from dynamo_single.conf import TableSettings

MILLISECONDS = 5


@contextlib.contextmanager
def far_away(
    near: TableSettings, milliseconds: float = MILLISECONDS, *, replayed: bool = False
) -> Iterator[TableSettings]:
    """Delay each request of the app to this table within the block; yield the settings that use the proxy.

    With ``replayed``, the proxy repeats the responses to reads without the engine, as ``delay`` describes.
    """
    with delayed(urlsplit(near.endpoint_url).port, milliseconds, replayed=replayed) as port:
        far = replace(near, endpoint_url=f"http://{HOST}:{port}")
        declared = {
            "TABLE_NAME": far.table_name,
            "REGION": far.region,
            "INDEXES": far.indexes,
            "ENDPOINT_URL": far.endpoint_url,
            "TRANSPORT": far.transport,
        }
        with override_settings(DYNAMO_SINGLE={**django_settings.DYNAMO_SINGLE, far.alias: declared}):
            yield far
