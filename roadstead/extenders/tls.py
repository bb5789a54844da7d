"""TLS contexts for extenders, from their configuration.

Upstream: pkg/scheduler/extender.go (makeTransport) and client-go transport (TLSConfigFor). The
difference: without root certificates in the configuration, upstream does not verify; here the
system's root certificates are used.
"""

from __future__ import annotations

import base64
import binascii
import os
import ssl
import tempfile
from pathlib import Path

from roadstead.config.model import ExtenderTLS
from roadstead.protocol.errors import InputError, cut_short

_FIELD = "tlsConfig"
"""The field of an extender in the configuration, for errors."""


def tls_context(tls: ExtenderTLS | None) -> ssl.SSLContext:
    """Return a client's context; InputError for unreadable certificates and keys."""
    context = ssl.create_default_context()
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    if tls is None:
        return context
    roots = _pem(tls.ca_data, tls.ca_file, "ca")
    if roots:
        context = _trusting(roots)
    if tls.insecure:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    _load_client_certificate(context, tls)
    return context


def _trusting(roots: str) -> ssl.SSLContext:
    """Return a context that trusts only these root certificates."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    try:
        context.load_verify_locations(cadata=roots)
    except (ssl.SSLError, ValueError):
        raise _refused("ca", "holds no certificate") from None
    return context


def _load_client_certificate(context: ssl.SSLContext, tls: ExtenderTLS) -> None:
    certificate = _pem(tls.cert_data, tls.cert_file, "cert")
    key = _pem(tls.key_data, tls.key_file, "key")
    if not certificate and not key:
        return
    if not certificate or not key:
        raise InputError("certificate and key go together", field=_FIELD)
    # OpenSSL reads them from files only; this one has mode 0600 and is removed at once.
    handle, path = tempfile.mkstemp(prefix="roadstead-tls-")
    try:
        with os.fdopen(handle, "w") as file:
            file.write(f"{certificate}\n{key}\n")
        # Without a password OpenSSL would read one from the terminal.
        context.load_cert_chain(path, password="")
    except (ssl.SSLError, ValueError):
        raise _refused("cert", "and its key cannot be used") from None
    finally:
        Path(path).unlink()


def _pem(data: str, file: str, what: str) -> str:
    """Return PEM text; as upstream, base64 data has precedence over the file.

    what: the first part of the field's name ("cert" of certData), for errors.
    """
    try:
        content = base64.b64decode(data, validate=True) if data else _read(file, what)
        return content.decode("ascii")
    except (binascii.Error, UnicodeDecodeError):
        raise _refused(what, "is not PEM") from None


def _read(file: str, what: str) -> bytes:
    if not file:
        return b""
    try:
        return Path(file).read_bytes()
    except OSError as failure:
        why = failure.strerror or type(failure).__name__
        raise InputError(
            f"cannot be read: {why}", field=f"{_FIELD}.{what}File", value=cut_short(file)
        ) from None


def _refused(what: str, problem: str) -> InputError:
    return InputError(problem, field=f"{_FIELD}.{what}Data or {what}File")
