"""A server that answers anything with garbage: `python -m tests.campaigns.liar PORT`."""

from __future__ import annotations

import asyncio
import random
import sys

LIES = (
    b"\x00\xff\x00garbage\r\n\r\n",
    b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\ndata: {{{\n\ndata: [1]\n\n",
    b"HTTP/1.1 200 OK\r\ncontent-length: 99999\r\n\r\n{",
    b"HTTP/1.1 999 \xff\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n",
    b"$99999999999\r\nx",
    b"*-7\r\n:abc\r\n+OK",
    b"",
)


async def lie(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.read(1 << 16)
    writer.write(random.choice(LIES))
    writer.close()


async def serve(port: int) -> None:
    server = await asyncio.start_server(lie, "127.0.0.1", port)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(serve(int(sys.argv[1])))
