"""The HTTP server, over real sockets."""

import asyncio
import json
import socket
import urllib.error
import urllib.request

import pytest
from prometheus_client import CollectorRegistry, Counter

from controlplane.status import json_page, metrics_page, serve
from leveller.errors import UserError


async def get(address, path, method="GET"):
    def fetch():
        request = urllib.request.Request(f"http://{address}{path}", method=method)
        try:
            with urllib.request.urlopen(request, timeout=5) as answer:
                return answer.status, answer.headers["Content-Type"], answer.read().decode()
        except urllib.error.HTTPError as error:
            with error:
                return error.code, error.headers["Content-Type"], error.read().decode()

    return await asyncio.to_thread(fetch)


async def test_pages_are_made_anew_each_time():
    registry, count = CollectorRegistry(), 0
    counter = Counter("things", "Things.", registry=registry)

    def status():
        nonlocal count
        count += 1
        return {"count": count}

    pages = {"/metrics": metrics_page(registry), "/status": json_page(status)}
    async with serve("127.0.0.1:0", pages) as address:
        counter.inc(3)
        code, kind, text = await get(address, "/metrics")
        assert (code, "things_total 3.0" in text) == (200, True)
        assert kind.startswith("text/plain")
        assert json.loads((await get(address, "/status"))[2]) == {"count": 1}
        assert json.loads((await get(address, "/status?pretty"))[2]) == {"count": 2}


async def test_other_paths_and_methods_are_refused():
    async with serve("127.0.0.1:0", {"/status": json_page(dict)}) as address:
        assert (await get(address, "/"))[::2] == (404, "there are: /status\n")
        assert (await get(address, "/status", "POST"))[0] == 405
        assert (await get(address, "/status", "HEAD"))[::2] == (200, "")


async def test_silent_and_odd_clients_keep_nobody_waiting():
    async with serve("127.0.0.1:0", {"/status": json_page(dict)}) as address:
        host, port = address.split(":")
        silent = [await asyncio.open_connection(host, int(port)) for _ in range(20)]
        _, writer = await asyncio.open_connection(host, int(port))
        writer.write(b"\x00\xff" * 50_000)
        assert (await get(address, "/status"))[0] == 200
        writer.close()
        for _, each in silent:
            each.close()


async def test_an_address_in_use_is_one_line():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        with pytest.raises(UserError, match=f"controller.http = {address} cannot be listened on"):
            async with serve(address, {}):
                pass


@pytest.mark.parametrize("host", ["a..b", "a" * 70])
async def test_a_host_that_no_name_can_be(host):
    with pytest.raises(UserError, match="cannot be listened on"):
        async with serve(f"{host}:0", {}):
            pass
