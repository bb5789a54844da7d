"""Functions of Kubernetes' own types: quantities, versions, URLs, addresses, formats.

Upstream: apiserver pkg/cel/library/quantity.go, semverlib.go, urls.go, ip.go, cidr.go, format.go.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from roadstead.cel.errors import CelRunError, no_overload
from roadstead.cel.formats import NAMED_FORMATS, violations
from roadstead.cel.network import (
    Address,
    Cidr,
    NetworkError,
    parse_address,
    parse_network,
)
from roadstead.cel.semver import Semver, SemverError, parse_loose_semver, parse_semver
from roadstead.cel.urls import UrlError, parse_url
from roadstead.cel.values import (
    INT_MAX,
    INT_MIN,
    NONE,
    NamedFormat,
    Optional,
    QuantityResult,
    Url,
    Value,
)
from roadstead.protocol.quantity import Quantity, QuantityError, parse_quantity

_EXPONENT_MAX = 400
"""Larger powers of ten are infinite as a double, or zero."""


def _quantity(text: str) -> Quantity:
    try:
        return parse_quantity(text)
    except QuantityError as error:
        raise CelRunError(str(error)) from None


def _is_valid(parse: Callable[[str], object], *errors: type[Exception]) -> Callable[[str], bool]:
    """Return the function that tries to parse a text; errors: what `parse` raises if it fails."""

    def checked(text: str) -> bool:
        try:
            parse(text)
        except errors:
            return False
        return True

    return checked


def whole_int64(quantity: Quantity) -> int | None:
    """Return the amount if upstream keeps it as a whole int64, else None."""
    # `is_big`: upstream has a big decimal in place of an int64.
    if quantity.is_big or quantity.exponent < 0 or quantity.exponent > 18:
        return None
    amount: int = quantity.unscaled * 10**quantity.exponent
    return amount if INT_MIN <= amount <= INT_MAX else None


def _as_integer(quantity: Quantity) -> int:
    amount = whole_int64(quantity)
    if amount is None:
        raise CelRunError("cannot convert value to integer")
    return amount


def _as_float(quantity: Quantity) -> float:
    exponent = max(-_EXPONENT_MAX, min(_EXPONENT_MAX, quantity.exponent))
    unscaled = float(quantity.unscaled)
    if exponent == 0:
        return unscaled
    try:
        return unscaled * 10.0**exponent
    except OverflowError:
        return unscaled * float("inf")


def _plus(quantity: Quantity, other: Quantity | int) -> Quantity:
    try:
        return _result(quantity.add(_amount(other)))
    except QuantityError as error:
        raise CelRunError(str(error)) from None


def _minus(quantity: Quantity, other: Quantity | int) -> Quantity:
    try:
        return _result(quantity.sub(_amount(other)))
    except QuantityError as error:
        raise CelRunError(str(error)) from None


def _result(quantity: Quantity) -> QuantityResult:
    # Upstream has another class for sums and differences.
    return QuantityResult(
        quantity.unscaled, quantity.exponent, quantity.format, quantity.is_big, quantity.text
    )


def _amount(other: Quantity | int) -> Quantity:
    # The notation that upstream gives a whole number.
    return other if isinstance(other, Quantity) else Quantity(other, 0, "DecimalExponent")


def _semver(text: str, is_loose: bool = False) -> Semver:
    try:
        return parse_loose_semver(text) if is_loose else parse_semver(text)
    except SemverError as error:
        raise CelRunError(str(error)) from None


def _is_semver(text: str, is_loose: bool = False) -> bool:
    try:
        _semver(text, is_loose)
    except CelRunError:
        return False
    return True


def _url(text: str) -> Url:
    try:
        return parse_url(text)
    except UrlError as error:
        raise CelRunError(f"URL parse error during conversion from string: {error}") from None


def _query(url: Url) -> dict[Value, Value]:
    return {name: list(values) for name, values in url.query}


def _address(text: str) -> Address:
    try:
        return parse_address(text)
    except NetworkError as error:
        raise CelRunError(str(error)) from None


def _network(text: str) -> Cidr:
    try:
        return parse_network(text)
    except NetworkError as error:
        prefix = "network address parse error during conversion from string: "
        raise CelRunError(f"{prefix}{error}") from None


def _contains_ip_text(network: Cidr, text: str) -> bool:
    # As upstream, the error does not contain why the text is no address.
    try:
        return network.has(parse_address(text))
    except NetworkError:
        raise no_overload() from None


def _validated(named: NamedFormat, text: str) -> Value:
    errors = violations(named, text)
    return Optional(list(errors)) if errors else NONE


def _format_named(name: str) -> Value:
    named = NAMED_FORMATS.get(name)
    return Optional(named) if named is not None else NONE


def _constant(named: NamedFormat) -> Callable[[], Value]:
    return lambda: named


KUBERNETES_FUNCTIONS: Final[dict[str, Callable[..., Value]]] = {
    "string_to_quantity": _quantity,
    "is_quantity_string": _is_valid(parse_quantity, QuantityError),
    "quantity_sign": lambda quantity: quantity.sign,
    "quantity_is_greater_than": lambda first, second: first.cmp(second) > 0,
    "quantity_is_less_than": lambda first, second: first.cmp(second) < 0,
    "quantity_compare_to": lambda first, second: first.cmp(second),
    "quantity_get_float": _as_float,
    "quantity_get_int": _as_integer,
    "quantity_is_integer": lambda quantity: whole_int64(quantity) is not None,
    "quantity_add": _plus,
    "quantity_add_int": _plus,
    "quantity_sub": _minus,
    "quantity_sub_int": _minus,
    "string_to_semver": _semver,
    "string_bool_to_semver": _semver,
    "is_semver_string": _is_semver,
    "is_semver_string_bool": _is_semver,
    "semver_is_greater_than": lambda first, second: first.cmp(second) > 0,
    "semver_is_less_than": lambda first, second: first.cmp(second) < 0,
    "semver_compare_to": lambda first, second: first.cmp(second),
    "semver_major": lambda version: _signed(version.major),
    "semver_minor": lambda version: _signed(version.minor),
    "semver_patch": lambda version: _signed(version.patch),
    "string_to_url": _url,
    "is_url_string": _is_valid(parse_url, UrlError),
    "url_get_scheme": lambda url: url.scheme,
    "url_get_host": lambda url: url.host,
    "url_get_hostname": lambda url: url.hostname,
    "url_get_port": lambda url: url.port,
    "url_get_escaped_path": lambda url: url.escaped_path,
    "url_get_query": _query,
    "string_to_ip": _address,
    "is_ip": _is_valid(parse_address, NetworkError),
    "ip_is_canonical": lambda text: str(_address(text)) == text,
    "ip_family": lambda address: address.family,
    "ip_is_unspecified": lambda address: address.ip.is_unspecified,
    "ip_is_loopback": lambda address: address.ip.is_loopback,
    "ip_is_link_local_multicast": lambda address: address.is_link_local_multicast,
    "ip_is_link_local_unicast": lambda address: address.is_link_local_unicast,
    "ip_is_global_unicast": lambda address: address.is_global_unicast,
    "string_to_cidr": _network,
    "is_cidr": _is_valid(parse_network, NetworkError),
    "cidr_contains_ip_string": _contains_ip_text,
    "cidr_contains_ip_ip": lambda network, address: network.has(address),
    "cidr_contains_cidr_string": lambda network, text: network.has_network(_network(text)),
    "cidr_contains_cidr": lambda network, other: network.has_network(other),
    "cidr_ip": lambda network: network.address,
    "cidr_prefix_length": lambda network: network.bits,
    "cidr_masked": lambda network: network.masked(),
    "format-validate": _validated,
    "format-named": _format_named,
    **{f"format.{name}": _constant(named) for name, named in NAMED_FORMATS.items()},
}
"""Implementations by the overload's id, which is upstream's."""


def _signed(number: int) -> int:
    # Upstream converts a uint64 to an int64 without a check: large numbers become negative.
    return number - 2**64 if number > INT_MAX else number
