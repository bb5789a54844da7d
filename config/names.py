"""Rules for names: qualified names, label values, extended resources.

Upstream: apimachinery/pkg/util/validation/validation.go, pkg/apis/core/v1/helper/helpers.go.
"""

from __future__ import annotations

import re
from typing import Final

_NAME_MAX_BYTES: Final = 63
_PREFIX_MAX_BYTES: Final = 253
_NAME: Final = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_LABEL_VALUE: Final = f"({_NAME})?"
_DNS_LABEL: Final = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN: Final = rf"{_DNS_LABEL}(\.{_DNS_LABEL})*"

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
_RESERVED_NAMESPACE: Final = "kubernetes.io/"
_QUOTA_PREFIX: Final = "requests."


def qualified_name_errors(name: str) -> list[str]:
    """Why `[prefix/]name` is not a qualified name; empty if it is."""
    prefix, slash, rest = name.partition("/")
    if "/" in rest:
        return [
            f"a qualified name {_NAME_RULE} with an optional DNS subdomain prefix and '/' "
            "(e.g. 'example.com/MyName')"
        ]
    errors = _prefix_errors(prefix) if slash else []
    part = rest if slash else prefix
    if not part:
        return [*errors, "name part must be non-empty"]
    if _too_long(part, _NAME_MAX_BYTES):
        errors.append(f"name part {_too_long_rule(_NAME_MAX_BYTES)}")
    if not re.fullmatch(_NAME, part):
        errors.append(f"name part {_NAME_RULE}")
    return errors


def label_value_errors(value: str) -> list[str]:
    """Why a text cannot be a label value; empty if it can."""
    errors = [_too_long_rule(_NAME_MAX_BYTES)] if _too_long(value, _NAME_MAX_BYTES) else []
    if not re.fullmatch(_LABEL_VALUE, value):
        errors.append(_LABEL_VALUE_RULE)
    return errors


def is_extended_resource(name: str) -> bool:
    """Whether a resource lies outside kubernetes.io/ and could also be named in a quota."""
    if "/" not in name or _RESERVED_NAMESPACE in name or name.startswith(_QUOTA_PREFIX):
        return False
    return not qualified_name_errors(_QUOTA_PREFIX + name)


def _prefix_errors(prefix: str) -> list[str]:
    if not prefix:
        return ["prefix part must be non-empty"]
    errors = []
    if _too_long(prefix, _PREFIX_MAX_BYTES):
        errors.append(f"prefix part {_too_long_rule(_PREFIX_MAX_BYTES)}")
    if not re.fullmatch(_SUBDOMAIN, prefix):
        errors.append(f"prefix part {_SUBDOMAIN_RULE}")
    return errors


def _too_long(text: str, max_bytes: int) -> bool:
    return len(text.encode("utf-8", "surrogatepass")) > max_bytes


def _too_long_rule(max_bytes: int) -> str:
    return f"must be no more than {max_bytes} characters"
