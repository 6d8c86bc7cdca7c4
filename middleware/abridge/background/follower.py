"""Stream the events of a background response to a client, which may come and go."""

from __future__ import annotations

import asyncio

from starlette.types import Receive, Send

from abridge.errors import RequestError
from abridge.http.asgi import EVENT_STREAM
from abridge.pipeline.answers.stream import KEEP_ALIVE
from abridge.pipeline.client import Client, Clock
from abridge.stored_responses.event_log import EventSource, events_after


async def follow(source: EventSource, number: int, receive: Receive, send: Send) -> None:
    """Send the events after this number until the response has ended, or the client leaves."""
    client = Client(receive, send, Clock())
    client.keep_alive = lambda: KEEP_ALIVE
    try:
        async with asyncio.TaskGroup() as tasks:
            client.listen(tasks)
            sending = tasks.create_task(client.run())
            headers = [(b"content-type", EVENT_STREAM), (b"cache-control", b"no-cache")]
            client.start({"type": "http.response.start", "status": 200, "headers": headers})
            copying = tasks.create_task(_copy(source, number, client))
            client.on_leave = copying.cancel
            if client.departed:
                copying.cancel()
            await asyncio.wait((copying, sending))
            client.detach()  # so that its own task ends
    finally:
        client.detach()


async def _copy(source: EventSource, number: int, client: Client) -> None:
    """Send events, and close the stream; break it off where they can no longer be found."""
    try:
        async for frame in events_after(source, number):
            client.write(frame)
            if client.is_behind:
                await client.drain()
    except RequestError:
        client.close(complete=False)
    except OSError:  # what `drain` raises once the client has left
        pass
    else:
        client.close()
