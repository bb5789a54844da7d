"""Named formats: `format.dns1123Label().validate(x)`.

Upstream: apiserver pkg/cel/library/format.go; apimachinery pkg/util/validation,
pkg/api/validation; kube-openapi strfmt.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable
from datetime import date
from typing import Final

from roadstead.cel.errors import CelRunError
from roadstead.cel.times import parse_timestamp
from roadstead.cel.urls import UrlError, parse_url
from roadstead.cel.values import NamedFormat

_LABEL = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_LABEL_ERROR = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and "
    "must start and end with an alphanumeric character"
)
_SUBDOMAIN = rf"{_LABEL}(\.{_LABEL})*"
_SUBDOMAIN_ERROR = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.',"
    " and must start and end with an alphanumeric character"
)
_LABEL_1035 = "[a-z]([-a-z0-9]*[a-z0-9])?"
_LABEL_1035_ERROR = (
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an "
    "alphabetic character, and end with an alphanumeric character"
)
_NAME = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_NAME_ERROR = (
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an "
    "alphanumeric character"
)
_VALUE = f"({_NAME})?"
_VALUE_ERROR = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', "
    "and must start and end with an alphanumeric character"
)
_UUID = re.compile(r"(?i)[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}")
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")

Check = Callable[[str], list[str]]
"""Function that returns the errors of a text."""


def _too_long(limit: int) -> str:
    return f"must be no more than {limit} characters"


def _explained(error: str, pattern: str, *examples: str) -> str:
    """Return an error with the pattern and the examples, as upstream's RegexError."""
    if not examples:
        return f"{error} (regex used for validation is '{pattern}')"
    shown = " or ".join(f"'{example}'" for example in examples[:1])
    shown += "".join(f",  or '{example}'" for example in examples[1:])
    return f"{error} (e.g. {shown}, regex used for validation is '{pattern}')"


def _matched(limit: int, pattern: str, error: str, *examples: str) -> Check:
    """Return the check of a pattern and of a maximum length in bytes."""
    compiled = re.compile(pattern)

    def check(text: str) -> list[str]:
        errors = [_too_long(limit)] if len(text.encode("utf-8", "replace")) > limit else []
        # Long texts are not matched: Python's patterns may backtrack.
        if len(text) > 4 * limit or not compiled.fullmatch(text):
            errors.append(_explained(error, pattern, *examples))
        return errors

    return check


def _prefix(check: Check) -> Check:
    """Return the check of the start of a name, as in `generateName`: it may end with a dash."""

    def checked(text: str) -> list[str]:
        with_letter = f"{text[:-1]}a" if len(text) > 1 and text.endswith("-") else text
        return check(with_letter)

    return checked


_label = _matched(63, _LABEL, _LABEL_ERROR, "my-name", "123-abc")
_subdomain = _matched(253, _SUBDOMAIN, _SUBDOMAIN_ERROR, "example.com")
_label_1035 = _matched(63, _LABEL_1035, _LABEL_1035_ERROR, "my-name", "abc-123")
_name = _matched(63, _NAME, _NAME_ERROR, "MyName", "my.name", "123-abc")
_label_value = _matched(63, _VALUE, _VALUE_ERROR, "MyValue", "my_value", "12345")


def _qualified_name(text: str) -> list[str]:
    parts = text.split("/")
    if len(parts) > 2:
        error = "a qualified name " + _explained(_NAME_ERROR, _NAME, "MyName", "my.name", "123-abc")
        return [
            f"{error} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
        ]
    errors: list[str] = []
    if len(parts) == 2:
        prefix = parts[0]
        of_prefix = _subdomain(prefix) if prefix else ["must be non-empty"]
        errors += [f"prefix part {error}" for error in of_prefix]
    name = parts[-1]
    if not name:
        return [*errors, "name part must be non-empty"]
    return errors + [f"name part {error}" for error in _name(name)]


def _uri(text: str) -> list[str]:
    try:
        parse_url(text)
    except UrlError as error:
        return [str(error)]
    return []


def _byte(text: str) -> list[str]:
    """Check bytes in base64."""
    try:
        base64.b64decode(text.encode("ascii", "replace"), validate=True)
    except (binascii.Error, ValueError):
        return ["invalid base64"]
    return []


def _date(text: str) -> list[str]:
    try:
        if not _DATE.fullmatch(text):
            raise ValueError(text)
        date.fromisoformat(text)
    except ValueError:
        return ["invalid date"]
    return []


def _datetime(text: str) -> list[str]:
    try:
        is_valid = parse_timestamp(text.upper()) is not None
    except CelRunError:
        is_valid = False
    return [] if is_valid else ["invalid datetime"]


def _uuid(text: str) -> list[str]:
    return [] if _UUID.fullmatch(text) else ["does not match the UUID format"]


# By name: upstream's name in errors, length of the pattern in characters, check.
_CHECKS: Final[dict[str, tuple[str, int, Check]]] = {
    "dns1123Label": ("DNS1123Label", 30, _label),
    "dns1123Subdomain": ("DNS1123Subdomain", 60, _subdomain),
    "dns1035Label": ("DNS1035Label", 30, _label_1035),
    "qualifiedName": ("QualifiedName", 60, _qualified_name),
    "dns1123LabelPrefix": ("DNS1123LabelPrefix", 30, _prefix(_label)),
    "dns1123SubdomainPrefix": ("DNS1123SubdomainPrefix", 60, _prefix(_subdomain)),
    "dns1035LabelPrefix": ("DNS1035LabelPrefix", 30, _prefix(_label_1035)),
    "labelValue": ("LabelValue", 40, _label_value),
    "uri": ("URI", 1103, _uri),
    "uuid": ("uuid", 78, _uuid),
    "byte": ("byte", 84, _byte),
    "date": ("date", 182, _date),
    "datetime": ("datetime", 182, _datetime),
}

NAMED_FORMATS: Final = {
    name: NamedFormat(title, chars) for name, (title, chars, _) in _CHECKS.items()
}
"""All formats by the argument of `format.named`."""

_BY_TITLE = {title: check for title, _, check in _CHECKS.values()}


def violations(named: NamedFormat, text: str) -> list[str]:
    """Return the errors of a text, as upstream words them."""
    return _BY_TITLE[named.name](text)
