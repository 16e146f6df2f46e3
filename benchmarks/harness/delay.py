"""A proxy between a client and a local engine, which delays each request. It runs in a separate process.

``python -m benchmarks.harness.delay PORT MILLISECONDS [replayed]`` prints its port. ``delayed(...)`` runs it. With
``replayed``, the engine serves each read once, and the proxy then repeats the response. The remaining time is the
network's and the client's, without the engine's work on the same cores.
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
#: The most bytes in a read of a socket.
CHUNK = 1 << 18
#: Operations without changes, so that equal requests have equal responses.
READS = {b"BatchGetItem", b"GetItem", b"Query", b"Scan"}


@contextlib.contextmanager
def delayed(port: int, milliseconds: float, *, replayed: bool = False) -> Iterator[int]:
    """Start the proxy for the block, and yield its port. Requests reach the other port with this delay."""
    command = (sys.executable, "-m", "benchmarks.harness.delay", str(port), str(milliseconds))
    command += ("replayed",) if replayed else ()
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as proxy:
        try:
            yield int(proxy.stdout.readline())
        finally:
            proxy.terminate()


async def _serve(port: int, seconds: float, *, replayed: bool) -> None:
    answers: dict[tuple[bytes, bytes], bytes] = {}

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        engine_reader, engine_writer = await asyncio.open_connection(HOST, port, limit=CHUNK)
        if replayed:
            with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
                await _replay(answers, (reader, writer), (engine_reader, engine_writer), seconds)
            engine_writer.close()
            writer.close()
        else:
            await asyncio.gather(_pump(reader, engine_writer, seconds), _pump(engine_reader, writer, 0))

    server = await asyncio.start_server(connected, HOST, 0, limit=CHUNK, backlog=512)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


_Ends = tuple[asyncio.StreamReader, asyncio.StreamWriter]


async def _replay(answers: dict[tuple[bytes, bytes], bytes], client: _Ends, engine: _Ends, seconds: float) -> None:
    """Serve one connection's requests sequentially."""
    while True:
        head, body = await _message(client[0])
        target = next(line.split(b".")[-1] for line in head.splitlines() if line.lower().startswith(b"x-amz-target"))
        if (target, body) not in answers:
            engine[1].write(head + body)
            answer = b"".join(await _message(engine[0]))
            answers |= {(target, body): answer} if target in READS else {}
        else:
            answer = answers[target, body]
        await asyncio.sleep(seconds)
        client[1].write(answer)


async def _message(reader: asyncio.StreamReader) -> tuple[bytes, bytes]:
    """Return the head and the body of a request or response."""
    head = await reader.readuntil(b"\r\n\r\n")
    length = next(line.split(b":")[1] for line in head.splitlines() if line.lower().startswith(b"content-length"))
    return head, await reader.readexactly(int(length))


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, seconds: float) -> None:
    loop = asyncio.get_running_loop()
    with contextlib.suppress(ConnectionError):
        while part := await reader.read(CHUNK):
            if seconds:  # parts are delayed in parallel: an earlier part does not delay the next
                loop.call_later(seconds, writer.write, part)
            else:
                writer.write(part)
    loop.call_later(seconds, writer.close)


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(_serve(int(sys.argv[1]), float(sys.argv[2]) / 1000, replayed="replayed" in sys.argv))
