"""A small HTTP server: GET /metrics for Prometheus, GET /status as JSON, GET / for people."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Callable, Mapping
from importlib import resources

from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest

from leveller.errors import UserError

_TIMEOUT_S = 5.0
_MAX_REQUEST = 8192
_MAX_CLIENTS = 64

Page = Callable[[], tuple[str, bytes]]
"""Makes a page: content type and body."""


def metrics_page(registry: CollectorRegistry) -> Page:
    """Return the page of ``registry``'s metrics."""
    return lambda: (CONTENT_TYPE_LATEST, generate_latest(registry))


def json_page(make: Callable[[], object]) -> Page:
    """Return the page of whatever ``make`` returns, as JSON; indented it would take ten times as long."""
    return lambda: ("application/json", json.dumps(make()).encode() + b"\n")


def html_page() -> Page:
    """Return the page for people, which shows /status again every second."""
    body = (resources.files("controlplane") / "page.html").read_bytes()
    return lambda: ("text/html; charset=utf-8", body)


@contextlib.asynccontextmanager
async def serve(address: str, pages: Mapping[str, Page]) -> AsyncIterator[str]:
    """Serve ``pages`` (path -> page) on ``address``, ``HOST:PORT``; yield the address that it is really on.

    Raises UserError where the address cannot be listened on.
    """
    host, _, port = address.rpartition(":")
    clients: set[asyncio.Task[None]] = set()

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        if task is None or len(clients) >= _MAX_CLIENTS:
            writer.close()
            return
        clients.add(task)
        try:
            async with asyncio.timeout(_TIMEOUT_S):
                await _answer(reader, writer, pages)
        except (OSError, TimeoutError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            pass  # a client that is gone, slow or talks something else gets no answer
        finally:
            clients.discard(task)
            writer.close()

    try:
        server = await asyncio.start_server(connected, host.strip("[]"), int(port), limit=_MAX_REQUEST)
    except (OSError, UnicodeError) as error:  # UnicodeError: no host can have that name
        reason = getattr(error, "strerror", None) or error
        raise UserError(
            f"controller.http = {address} cannot be listened on ({reason})",
            "free that port or give another",
        ) from None
    try:
        yield f"{host}:{server.sockets[0].getsockname()[1]}"
    finally:
        server.close()
        for task in clients:
            task.cancel()
        await asyncio.gather(*clients, return_exceptions=True)


async def _answer(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, pages: Mapping[str, Page]
) -> None:
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    method, _, rest = head.partition(" ")
    path = rest.split(" ", 1)[0].split("?", 1)[0]
    kind, body = "text/plain; charset=utf-8", b""
    if method not in ("GET", "HEAD"):
        code, body = "405 Method Not Allowed", b"only GET and HEAD\n"
    elif path not in pages:
        code, body = "404 Not Found", f"there are: {', '.join(pages)}\n".encode()
    else:
        code = "200 OK"
        kind, body = pages[path]()
    writer.write(
        f"HTTP/1.1 {code}\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\n"
        "Connection: close\r\nCache-Control: no-store\r\n\r\n".encode()
        + (b"" if method == "HEAD" else body)
    )
    await writer.drain()
