"""Certificates: one that is not trusted is an error that says what to set; trusted, the cluster is asked."""

from __future__ import annotations

import ssl
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

import pytest
from asking import reach
from cluster_server import ClusterServer

from fliprank.clusters.access import Access
from fliprank.errors import InputError, UsageError

pytestmark = pytest.mark.long

VAGUE = ("elasticsearch", "vespa")
"""Whose clients do not say why they could not connect."""


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of an authority of its own; beside it in server.pem what it signed for this address, with its key."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    folder, now = tmp_path_factory.mktemp("tls"), datetime.now(UTC)
    keys = {name: ec.generate_private_key(ec.SECP256R1()) for name in ("authority", "server")}
    names = {name: x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)]) for name in keys}
    address = x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))])
    for number, name in enumerate(keys, 1):
        made = x509.CertificateBuilder().subject_name(names[name]).issuer_name(names["authority"])
        made = made.public_key(keys[name].public_key()).serial_number(number).add_extension(address, False)
        made = made.not_valid_before(now - timedelta(days=1)).not_valid_after(now + timedelta(days=9))
        made = made.add_extension(x509.BasicConstraints(ca=name == "authority", path_length=None), True)
        signed = made.sign(keys["authority"], hashes.SHA256()).public_bytes(serialization.Encoding.PEM)
        private = keys[name].private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
        (folder / f"{name}.pem").write_bytes(signed + (private if name == "server" else b""))
    return folder / "authority.pem"


@pytest.fixture(scope="module")
def secure(running: ClusterServer, certificate: Path) -> Iterator[ClusterServer]:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate.parent / "server.pem")
    documents = {"d1": {"title": "w1", "body": "w1 w2"}, "d2": {"title": "w2", "body": ""}}
    server = ClusterServer(documents, ["title", "body"], tls=context)
    yield server
    server.close()


def test_a_certificate_counts_if_it_is_trusted(secure: ClusterServer, certificate: Path, engine: str) -> None:
    trusting = reach(secure, engine, environment={"FLIPRANK_CA_CERTS": str(certificate)})
    assert set(trusting.fields()) == {"title", "body"}


def test_a_certificate_that_nobody_trusts_is_an_error(secure: ClusterServer, engine: str) -> None:
    cluster = reach(secure, engine, environment={})
    said = r"no answer.*is its certificate trusted" if engine in VAGUE else r"its certificate is not trusted"
    with pytest.raises(InputError, match=said + r".*FLIPRANK_CA_CERTS"):
        cluster.fields()


def test_a_file_of_certificates_that_is_not_there() -> None:
    with pytest.raises(UsageError, match=r"FLIPRANK_CA_CERTS names a file that is not there: nowhere.pem"):
        Access.of("https://host", "shop", {"FLIPRANK_CA_CERTS": "nowhere.pem"})
