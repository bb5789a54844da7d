"""TLS with real certificates: trusted, untrusted, of the client, broken."""

import base64
import ssl

import pytest

from roadstead.config.model import ExtenderTLS
from roadstead.extenders.caller import ExtenderError
from roadstead.extenders.http import HttpCaller
from roadstead.extenders.tls import tls_context
from roadstead.protocol.errors import InputError
from tests.extenders.servers import Server, config_of, tls_server_context

trustme = pytest.importorskip("trustme")


@pytest.fixture(scope="module")
def authority():
    return trustme.CA()


@pytest.fixture(scope="module")
def certificate(authority):
    return authority.issue_cert("127.0.0.1", "extender.example")


def in_base64(blob):
    return base64.b64encode(blob.bytes()).decode()


def ask(server, tls):
    return HttpCaller(config_of(server.port, scheme="https", tls=tls)).call("filter", {})


@pytest.fixture
def server(certificate):
    with Server(lambda *_: {"message": True}, tls_server_context(certificate)) as running:
        yield running


def test_a_server_whose_root_is_given_as_data_is_trusted(server, authority):
    assert ask(server, ExtenderTLS(ca_data=in_base64(authority.cert_pem))) == {"message": True}


def test_a_server_whose_root_is_given_as_a_file_is_trusted(server, authority, tmp_path):
    authority.cert_pem.write_to_path(tmp_path / "ca.pem")

    assert ask(server, ExtenderTLS(ca_file=str(tmp_path / "ca.pem"))) == {"message": True}


def test_a_server_of_an_unknown_root_is_not_trusted(server):
    other = trustme.CA()

    for tls in (None, ExtenderTLS(), ExtenderTLS(ca_data=in_base64(other.cert_pem))):
        with pytest.raises(ExtenderError, match="the certificate is not trusted"):
            ask(server, tls)


def test_an_insecure_extender_is_not_verified(server):
    assert ask(server, ExtenderTLS(insecure=True)) == {"message": True}


def test_the_name_of_the_server_is_verified(server, authority):
    roots = in_base64(authority.cert_pem)

    assert ask(server, ExtenderTLS(ca_data=roots, server_name="extender.example"))
    with pytest.raises(ExtenderError, match="Hostname mismatch"):
        ask(server, ExtenderTLS(ca_data=roots, server_name="other.example"))


def test_a_client_sends_its_certificate(authority, certificate, tmp_path):
    own = trustme.CA()
    mine = own.issue_cert("client.example")
    roots = in_base64(authority.cert_pem)
    mine.private_key_pem.write_to_path(tmp_path / "key.pem")
    chain = mine.cert_chain_pems[0]
    given = ExtenderTLS(
        ca_data=roots, cert_data=in_base64(chain), key_file=str(tmp_path / "key.pem")
    )
    context = tls_server_context(certificate, client_roots=own)
    with Server(lambda *_: {"message": True}, context) as server:
        assert ask(server, given) == {"message": True}
        with pytest.raises(ExtenderError):
            ask(server, ExtenderTLS(ca_data=roots))


def test_a_server_without_tls_is_reported():
    with Server(lambda *_: {}) as server:
        config = config_of(server.port, scheme="https", tls=ExtenderTLS(insecure=True))
        with pytest.raises(ExtenderError, match=r"^Post "):
            HttpCaller(config).call("filter", {})


def test_unusable_certificates_are_named(authority, tmp_path):
    leaf = authority.issue_cert("client.example")
    other = authority.issue_cert("other.example")
    garbage = base64.b64encode(b"nothing").decode()
    pem = in_base64(leaf.cert_chain_pems[0])
    cases = {
        r"caFile: .* cannot be read: No such file": ExtenderTLS(ca_file=str(tmp_path / "none")),
        r"caData or caFile: holds no certificate": ExtenderTLS(ca_data=garbage),
        r"caData or caFile: is not PEM": ExtenderTLS(ca_data="%"),
        r"certificate and key go together": ExtenderTLS(cert_data=pem),
        r"certData or certFile: and its key cannot be used": ExtenderTLS(
            cert_data=pem, key_data=in_base64(other.private_key_pem)
        ),
    }

    for text, tls in cases.items():
        with pytest.raises(InputError, match=text):
            tls_context(tls)


def test_without_settings_the_roots_of_the_system_are_used():
    context = tls_context(None)

    assert context.verify_mode is ssl.CERT_REQUIRED
    assert context.check_hostname
    assert context.minimum_version >= ssl.TLSVersion.TLSv1_2
