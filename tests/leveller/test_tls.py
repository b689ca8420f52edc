"""PEM files that are tried before gRPC gets them."""

from ipaddress import ip_address

import pytest

from leveller.errors import UserError
from leveller.tls import Names, TlsSection
from tests.certificates import Authority


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A CA, one that has expired, and certificates: good, expired, for servers only, for clients only."""
    folder = tmp_path_factory.mktemp("keys")
    authority = Authority(folder)
    Authority(folder, "old-ca", days=-1)
    authority.sign("h1", "DNS:h1,DNS:H1.example,IP:10.0.1.1,IP:fd00::1")
    authority.sign("plain")
    authority.sign("old", "DNS:h1", days=-1)
    authority.sign("server", "IP:127.0.0.1", more="extendedKeyUsage=serverAuth\n")
    authority.sign("client", "DNS:h1", more="extendedKeyUsage=clientAuth\n")
    (folder / "not.pem").write_text("hello\n")
    return folder


def section(folder, cert, key=None, ca="ca"):
    return TlsSection(cert=folder / f"{cert}.pem", key=folder / f"{key or cert}.key", ca=folder / f"{ca}.pem")


@pytest.mark.parametrize("role", ["server", "client"])
def test_whom_a_certificate_is_for(folder, role):
    names = section(folder, "h1").check("agent.tls", role)
    assert names == Names(
        frozenset({"h1", "H1.example"}), frozenset({ip_address("10.0.1.1"), ip_address("fd00::1")})
    )
    assert (names.host("h1"), names.host("H1"), names.host("h2")) == ("h1", "h1", None)


def test_the_common_name_counts_where_there_is_no_dns_name(folder):
    assert section(folder, "plain").check("agent.tls", "client") == Names(frozenset({"plain"}), frozenset())
    assert Names.of(["*.example"], [], ["h1"]).host("h1") is None
    assert Names.of(["*.example"], [], []).host("h1.example") is None
    assert Names.of(["h1", "H1", "h2"], [], []).host("h1") == "H1"  # one of the two, and always the same


def test_a_certificate_may_be_for_one_end_only(folder):
    section(folder, "server").check("controller.tls", "server")
    section(folder, "client").check("agent.tls", "client")


@pytest.mark.parametrize(
    ("files", "role", "message"),
    [
        (("a\0b",), "client", r"x\.cert: '.*a\\x00b\.pem' cannot be read \(embedded null byte\): give a PEM"),
        (("none",), "client", r"x\.cert: .*none\.pem cannot be read \(No such file.*\): give a PEM file"),
        (("h1", "none"), "client", r"x\.key: .*none\.key cannot be read"),
        (("h1", None, "none"), "client", r"x\.ca: .*none\.pem cannot be read"),
        (("h1", None, "not"), "client", r"x\.ca: .*not\.pem is no certificate"),
        (("h1", None, "h1"), "client", r"x\.ca: .*h1\.pem has no CA's certificate"),
        (("h1", None, "old-ca"), "client", r"x\.ca: .*old-ca\.pem has expired on .*: make a new CA"),
        (("h1", "plain"), "client", r"x\.key: .*plain\.key is not the key of .*h1\.pem"),
        (("not", "h1"), "server", r"x\.cert: .*not\.pem with .*h1\.key cannot be used"),
        (("old",), "client", r"x\.cert: .*old\.pem .* a client's: certificate has expired: have a new one"),
        (("old",), "server", r"x\.cert: .*old\.pem .* a server's: certificate has expired"),
        (("server",), "client", r"server\.pem cannot be used as a client's: .*purpose"),
        (("client",), "server", r"client\.pem cannot be used as a server's: .*purpose"),
    ],
)
def test_what_is_no_good_is_named_with_the_mend(folder, files, role, message):
    with pytest.raises(UserError, match=message) as caught:
        section(folder, *files).check("x", role)
    assert "\n" not in str(caught.value)
