"""Rules for names of objects, labels and resources, with the API server's messages.

Upstream: apimachinery/pkg/util/validation/validation.go, pkg/apis/core/v1/helper/helpers.go.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

_CACHE_MAX_NAMES: Final = 16_384
"""Number of checked names per function whose results are cached."""

# The API's bounds; its messages call bytes characters.
_LABEL_MAX_BYTES: Final = 63
_SUBDOMAIN_MAX_BYTES: Final = 253

# Patterns as upstream's messages quote them.
_NAME: Final = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_LABEL_VALUE: Final = f"({_NAME})?"
_DNS_LABEL: Final = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN: Final = rf"{_DNS_LABEL}(\.{_DNS_LABEL})*"
_DNS_1035: Final = "[a-z]([-a-z0-9]*[a-z0-9])?"

# These match the same texts as those above without backtracking: hostile text takes linear time.
_NAME_RE: Final = re.compile("[A-Za-z0-9](?:[-A-Za-z0-9_.]*[A-Za-z0-9])?")
# A label's value with its maximum length, 63 characters.
_SHORT_VALUE_RE: Final = re.compile("(?:[A-Za-z0-9](?:[-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?")
_DNS_LABEL_RE: Final = re.compile("[a-z0-9](?:[-a-z0-9]*[a-z0-9])?")
_DNS_1035_RE: Final = re.compile("[a-z](?:[-a-z0-9]*[a-z0-9])?")
_SUBDOMAIN_RE: Final = re.compile(
    r"[a-z0-9](?:[-a-z0-9]*[a-z0-9])?(?:\.[a-z0-9](?:[-a-z0-9]*[a-z0-9])?)*"
)

_NAME_RULE: Final = (
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an "
    "alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', "
    f"regex used for validation is '{_NAME}')"
)
_LABEL_VALUE_RULE: Final = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.',"
    " and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',"
    f"  or '12345', regex used for validation is '{_LABEL_VALUE}')"
)
_SUBDOMAIN_RULE: Final = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or "
    "'.', and must start and end with an alphanumeric character (e.g. 'example.com', "
    f"regex used for validation is '{_SUBDOMAIN}')"
)
_DNS_LABEL_RULE: Final = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and "
    "must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', "
    f"regex used for validation is '{_DNS_LABEL}')"
)
_DNS_1035_RULE: Final = (
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an "
    "alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or "
    f"'abc-123', regex used for validation is '{_DNS_1035}')"
)
_RESERVED_NAMESPACE: Final = "kubernetes.io/"
_QUOTA_PREFIX: Final = "requests."


@lru_cache(_CACHE_MAX_NAMES)
def qualified_name_errors(name: str) -> tuple[str, ...]:
    """Return why `[prefix/]name` is not a qualified name, such as a label's key; empty if it is."""
    prefix, slash, after_slash = name.partition("/")
    if "/" in after_slash:
        return (
            f"a qualified name {_NAME_RULE} with an optional DNS subdomain prefix and '/' "
            "(e.g. 'example.com/MyName')",
        )
    errors = _prefix_errors(prefix) if slash else []
    name_part = after_slash if slash else prefix
    if not name_part:
        errors.append("name part must be non-empty")
    elif _too_long(name_part, _LABEL_MAX_BYTES):
        errors.append(f"name part {_too_long_rule(_LABEL_MAX_BYTES)}")
    if not _NAME_RE.fullmatch(name_part):
        errors.append(f"name part {_NAME_RULE}")
    return tuple(errors)


def is_label_value(value: str) -> bool:
    """Whether a text can be a label's value."""
    return _SHORT_VALUE_RE.fullmatch(value) is not None


@lru_cache(_CACHE_MAX_NAMES)
def label_value_errors(value: str) -> tuple[str, ...]:
    """Return why a text cannot be a label's value; empty if it can."""
    errors = [_too_long_rule(_LABEL_MAX_BYTES)] if _too_long(value, _LABEL_MAX_BYTES) else []
    if value and not _NAME_RE.fullmatch(value):
        errors.append(_LABEL_VALUE_RULE)
    return tuple(errors)


def is_subdomain(name: str) -> bool:
    """Whether a text is a lowercase RFC 1123 subdomain, as names of most objects are."""
    # Most names have no dot, and the pattern of a single label matches these faster.
    match = _DNS_LABEL_RE.fullmatch(name) or _SUBDOMAIN_RE.fullmatch(name)
    return match is not None and len(name) <= _SUBDOMAIN_MAX_BYTES


def subdomain_errors(name: str) -> tuple[str, ...]:
    """Return why a text is no lowercase RFC 1123 subdomain; empty if it is one."""
    return _errors(name, _SUBDOMAIN_RE, _SUBDOMAIN_RULE, _SUBDOMAIN_MAX_BYTES)


@lru_cache(_CACHE_MAX_NAMES)
def dns_label_errors(name: str) -> tuple[str, ...]:
    """Return why a text is no RFC 1123 label, as a namespace's name is; empty if it is one."""
    return _errors(name, _DNS_LABEL_RE, _DNS_LABEL_RULE, _LABEL_MAX_BYTES)


def dns_1035_label_errors(name: str) -> tuple[str, ...]:
    """Return why a text is no RFC 1035 label, as a service's name is; empty if it is one."""
    return _errors(name, _DNS_1035_RE, _DNS_1035_RULE, _LABEL_MAX_BYTES)


@lru_cache(_CACHE_MAX_NAMES)
def is_extended_resource(name: str) -> bool:
    """Whether a resource is outside kubernetes.io/ and could also be named in a quota."""
    if "/" not in name or _RESERVED_NAMESPACE in name or name.startswith(_QUOTA_PREFIX):
        return False
    return not qualified_name_errors(_QUOTA_PREFIX + name)


def _prefix_errors(prefix: str) -> list[str]:
    if not prefix:
        return ["prefix part must be non-empty"]
    return [f"prefix part {error}" for error in subdomain_errors(prefix)]


def _errors(name: str, pattern: re.Pattern[str], rule: str, max_bytes: int) -> tuple[str, ...]:
    errors = [_too_long_rule(max_bytes)] if _too_long(name, max_bytes) else []
    if not pattern.fullmatch(name):
        errors.append(rule)
    return tuple(errors)


def _too_long(text: str, max_bytes: int) -> bool:
    return len(text.encode("utf-8", "surrogatepass")) > max_bytes


def _too_long_rule(max_bytes: int) -> str:
    return f"must be no more than {max_bytes} characters"
