"""The switches' channel by TLS: whom the controller trusts, and who it says it is."""

import asyncio
import subprocess
import sys
from dataclasses import replace

import pytest

from controlplane.southbound import Fabric, Result, Tls
from controlplane.southbound.target import openflow_installed
from leveller.errors import UserError
from tests.controlplane.southbound.helpers import PROGRAM, connected


def openssl(*arguments):
    subprocess.run(["openssl", *map(str, arguments)], check=True, capture_output=True)


@pytest.fixture(scope="module")
def keys(tmp_path_factory):
    """Two CAs; certificates of a switch and of a controller by the one, of a stranger by the other."""
    folder = tmp_path_factory.mktemp("keys")
    fresh = ("-nodes", "-days", "2", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-subj")
    extensions = folder / "san.ext"
    extensions.write_text("subjectAltName=DNS:switch.example,IP:127.0.0.1\n")
    for name in ("ca", "other"):
        key, pem = folder / f"{name}.key", folder / f"{name}.pem"
        openssl("req", "-x509", *fresh, f"/CN={name}", "-keyout", key, "-out", pem)
    for name, by in (("switch", "ca"), ("controller", "ca"), ("stranger", "other")):
        request = folder / f"{name}.csr"
        openssl("req", *fresh, f"/CN={name}", "-keyout", folder / f"{name}.key", "-out", request)
        signer = ("-CA", folder / f"{by}.pem", "-CAkey", folder / f"{by}.key", "-CAcreateserial")
        openssl("x509", "-req", "-days", "2", "-in", request, "-out", folder / f"{name}.pem",
                "-extfile", extensions, *signer)  # fmt: skip
    return folder


@pytest.fixture
def guarded(kind, switches, keys):
    """A switch that shows a certificate and wants one."""
    more = ["--grpc-server-ssl"]
    for option, name in (("cert", "switch.pem"), ("key", "switch.key"), ("cacert", "ca.pem")):
        more += [f"--grpc-server-{option}", str(keys / name)]
    if kind == "bmv2":
        more.append("--grpc-server-with-client-auth")
    return switches(more=more)


async def test_mutual_tls(guarded, keys, desire):
    tls = Tls(keys / "ca.pem", keys / "controller.pem", keys / "controller.key")
    async with Fabric([replace(guarded.target(), tls=tls)], PROGRAM) as fabric:
        await connected(fabric)
        assert (await fabric.apply({"S1": desire(1, 2)}))["S1"].result is Result.APPLIED
        assert fabric.held("S1").groups == desire(1, 2).groups


async def test_the_name_in_the_certificate_may_be_another_than_the_addresss(guarded, keys):
    tls = Tls(keys / "ca.pem", keys / "controller.pem", keys / "controller.key", "switch.example")
    async with Fabric([replace(guarded.target(), tls=tls)], PROGRAM) as fabric:
        await connected(fabric)


@pytest.mark.parametrize(
    "names",
    [None, ("ca.pem", None, None), ("ca.pem", "stranger.pem", "stranger.key"),
     ("other.pem", "controller.pem", "controller.key")],
    ids=["plain text", "no certificate", "a stranger's certificate", "a switch that we do not trust"],
)  # fmt: skip
async def test_no_session_without_trust_both_ways(guarded, keys, names):
    tls = names and Tls(*(name and keys / name for name in names))
    async with Fabric([replace(guarded.target(), tls=tls)], PROGRAM, deadline_s=1.0) as fabric:
        async with asyncio.timeout(10):
            while fabric.status()["S1"].error is None:  # noqa: ASYNC110 - nothing tells
                await asyncio.sleep(0.05)
        status = fabric.status()["S1"]
        assert (status.connected, status.primary, status.sessions) == (False, False, 0)


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (("none.pem", None, None), "ca: .*none.pem cannot be read .*: give a PEM file"),
        (("switch.key", None, None), "switch.key is no certificate"),
        (("ca.pem", "controller.pem", "switch.key"), "key: .*switch.key is not the key of .*controller.pem"),
    ],
)
def test_files_that_are_no_good_are_named(keys, names, message):
    with pytest.raises(UserError, match=message):
        Tls(*(name and keys / name for name in names)).check()


async def test_a_file_that_vanishes_is_said_and_asked_for_again(guarded, keys, tmp_path):
    mine = tmp_path / "controller.key"
    tls = Tls(keys / "ca.pem", keys / "controller.pem", mine)
    async with Fabric([replace(guarded.target(), tls=tls)], PROGRAM) as fabric:
        await asyncio.sleep(0.05)
        assert "controller.key cannot be read" in fabric.status()["S1"].error
        mine.write_bytes((keys / "controller.key").read_bytes())
        await connected(fabric)


def test_os_ken_is_an_extra(monkeypatch):
    assert openflow_installed()
    monkeypatch.setitem(sys.modules, "os_ken", None)
    assert not openflow_installed()
