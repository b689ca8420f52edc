"""The server's addresses and its TLS."""

import subprocess

import grpc
import pytest
from finsy.proto import p4r, p4r_grpc

from leveller.errors import UserError
from softswitch.p4runtime import server
from softswitch.p4runtime.server import Tls


def openssl(*arguments):
    subprocess.run(["openssl", *map(str, arguments)], check=True, capture_output=True)


@pytest.fixture(scope="module")
def keys(tmp_path_factory):
    """A CA, and a server's and a client's certificate signed by it; a stranger's signed by nobody."""
    folder = tmp_path_factory.mktemp("keys")
    subject = ("-nodes", "-days", "2", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-subj")
    for name in ("ca", "stranger"):
        openssl(
            "req",
            "-x509",
            *subject,
            f"/CN={name}",
            "-keyout",
            folder / f"{name}.key",
            "-out",
            folder / f"{name}.pem",
        )
    for name in ("server", "client"):
        request = folder / f"{name}.csr"
        openssl("req", *subject, "/CN=localhost", "-keyout", folder / f"{name}.key", "-out", request)
        extensions = folder / f"{name}.ext"
        extensions.write_text("subjectAltName=DNS:localhost,IP:127.0.0.1\n")
        signed = (
            "-CA",
            folder / "ca.pem",
            "-CAkey",
            folder / "ca.key",
            "-CAcreateserial",
            "-extfile",
            extensions,
        )
        openssl("x509", "-req", "-days", "2", "-in", request, "-out", folder / f"{name}.pem", *signed)
    return folder


@pytest.fixture
def serve(service):
    """Return a function that serves the device once more, by TLS; it returns the address."""
    running = []

    def start(*files):
        started, port = server.start(service[2], "127.0.0.1:0", Tls(*files))
        running.append(started)
        return f"127.0.0.1:{port}"

    yield start
    for item in running:
        item.stop(0).wait()


def version(address, keys, name=None):
    """Ask for the API version, as the client ``name``."""
    pair = (
        [(keys / f"{name}.key").read_bytes(), (keys / f"{name}.pem").read_bytes()] if name else [None, None]
    )
    credentials = grpc.ssl_channel_credentials((keys / "ca.pem").read_bytes(), *pair)
    with grpc.secure_channel(address, credentials) as channel:
        stub = p4r_grpc.P4RuntimeStub(channel)
        return stub.Capabilities(p4r.CapabilitiesRequest(), timeout=3).p4runtime_api_version


def test_tls_without_client_certificates(serve, keys):
    address = serve(keys / "server.pem", keys / "server.key", None)
    assert version(address, keys) == "1.5.0"
    with grpc.insecure_channel(address) as channel, pytest.raises(grpc.RpcError):
        p4r_grpc.P4RuntimeStub(channel).Capabilities(p4r.CapabilitiesRequest(), timeout=3)


def test_clients_must_be_signed_by_the_authority(serve, keys):
    address = serve(keys / "server.pem", keys / "server.key", keys / "ca.pem")
    assert version(address, keys, "client") == "1.5.0"
    for name in (None, "stranger"):
        with pytest.raises(grpc.RpcError) as caught:
            version(address, keys, name)
        assert caught.value.code() is grpc.StatusCode.UNAVAILABLE


@pytest.mark.parametrize(
    ("files", "message"),
    [
        (("none.pem", "server.key", None), "--grpc-server-cert .*none.pem cannot be read"),
        (("server.pem", "client.key", None), "--grpc-server-key .*client.key is not the key of .*server.pem"),
        (("server.pem", "server.key", "server.key"), "--grpc-server-cacert .*is no certificate"),
    ],
)
def test_files_that_are_no_good_are_named(service, keys, files, message):
    with pytest.raises(UserError, match=message):
        server.start(service[2], "127.0.0.1:0", Tls(*(keys / name if name else None for name in files)))


@pytest.mark.parametrize(
    "address",
    ["nowhere", "127.0.0.1", "127.0.0.1:port", "127.0.0.1:99999", "192.0.2.1:9559", "a..b:1", "unix:/none/s"],
)
def test_addresses_that_cannot_be_served(service, address):
    with pytest.raises(UserError, match="cannot serve P4Runtime on"):
        server.start(service[2], address)


def test_an_address_that_is_taken(service):
    with pytest.raises(UserError, match="in use"):
        server.start(service[2], service[0])
