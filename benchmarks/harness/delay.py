"""A network between a client and a local engine: a proxy in a process of its own, each request waiting on its way.

``python -m benchmarks.harness.delay PORT MILLISECONDS`` prints the port it listens on. ``delayed(...)`` runs it.
"""

from __future__ import annotations

import asyncio
import contextlib
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

HOST = "127.0.0.1"
ROOT = Path(__file__).resolve().parents[2]
#: What one read of a socket takes at most.
CHUNK = 1 << 18


@contextlib.contextmanager
def delayed(port: int, milliseconds: float) -> Iterator[int]:
    """Within the block, a port of this machine behind which the other one is so much further away."""
    command = (sys.executable, "-m", "benchmarks.harness.delay", str(port), str(milliseconds))
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as proxy:
        try:
            yield int(proxy.stdout.readline())
        finally:
            proxy.terminate()


async def _serve(port: int, seconds: float) -> None:
    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        engine_reader, engine_writer = await asyncio.open_connection(HOST, port, limit=CHUNK)
        await asyncio.gather(_pump(reader, engine_writer, seconds), _pump(engine_reader, writer, 0))

    server = await asyncio.start_server(connected, HOST, 0, limit=CHUNK, backlog=512)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, seconds: float) -> None:
    loop = asyncio.get_running_loop()
    with contextlib.suppress(ConnectionError):
        while part := await reader.read(CHUNK):
            if seconds:  # a part is not held up by the one before it: what is on its way travels side by side
                loop.call_later(seconds, writer.write, part)
            else:
                writer.write(part)
    loop.call_later(seconds, writer.close)


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(_serve(int(sys.argv[1]), float(sys.argv[2]) / 1000))
