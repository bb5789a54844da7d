"""Addresses and networks, read as Go's net/netip does.

Upstream: apiserver pkg/cel/library/ip.go, cidr.go; Go's net/netip.
"""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass

from roadstead.cel.network_errors import address_error
from roadstead.facts.quoting import go_quote

# Longer texts are no addresses.
_TEXT_MAX_CHARS = 256


class NetworkError(ValueError):
    """No address or network; the text begins like upstream's."""


@dataclass(frozen=True, slots=True)
class Address:
    """An IP address without zone."""

    ip: ipaddress.IPv4Address | ipaddress.IPv6Address

    @property
    def family(self) -> int:
        return self.ip.version

    @property
    def size_bytes(self) -> int:
        return self.ip.max_prefixlen // 8

    @property
    def is_link_local_multicast(self) -> bool:
        """Whether it is in 224.0.0.0/24 or ff02::/16, with any flags."""
        packed = self.ip.packed
        if self.family == 4:
            return packed[:3] == b"\xe0\x00\x00"
        return packed[0] == 0xFF and packed[1] & 0x0F == 0x02

    @property
    def is_global_unicast(self) -> bool:
        """Whether Go calls it global unicast, as it does private addresses."""
        if self.family == 4 and self.ip.packed in (b"\0\0\0\0", b"\xff\xff\xff\xff"):
            return False
        ip = self.ip
        return not (
            ip.is_unspecified or ip.is_loopback or ip.is_multicast or self.is_link_local_unicast
        )

    @property
    def is_link_local_unicast(self) -> bool:
        """Whether it is in 169.254.0.0/16 or fe80::/10."""
        packed = self.ip.packed
        if self.family == 4:
            return packed[:2] == b"\xa9\xfe"
        return packed[0] == 0xFE and packed[1] & 0xC0 == 0x80

    def __str__(self) -> str:
        return str(self.ip)


@dataclass(frozen=True, slots=True)
class Cidr:
    """An address and the length of its prefix in bits; the address is kept as written."""

    address: Address
    bits: int

    @property
    def size_bytes(self) -> int:
        return -(-self.bits // 8)

    def masked(self) -> Cidr:
        """Return the network with its first address."""
        return Cidr(self._address_of(self._prefix(self.address)), self.bits)

    def has(self, address: Address) -> bool:
        """Return whether the address is in the network."""
        if address.family != self.address.family:
            return False
        return self._prefix(address) == self._prefix(self.address)

    def has_network(self, other: Cidr) -> bool:
        """Return whether all of the other network is in this one."""
        return self.bits <= other.bits and self.has(other.address)

    def _prefix(self, address: Address) -> int:
        host_bits = address.ip.max_prefixlen - self.bits
        return int(address.ip) >> host_bits << host_bits

    def _address_of(self, number: int) -> Address:
        return Address(type(self.address.ip)(number))

    def __str__(self) -> str:
        return f"{self.address}/{self.bits}"


def parse_address(text: str) -> Address:
    """Parse an address.

    Raises:
        NetworkError: it is none, has a zone, or is an IPv4 address in IPv6 notation.
    """
    ip = _parsed(text)
    if ip is None:
        raise NetworkError(
            f"IP Address {go_quote(text)} parse error during conversion from string: "
            f"{address_error(text)}"
        )
    if isinstance(ip, ipaddress.IPv6Address):
        if ip.scope_id is not None:
            raise NetworkError(f"IP address {go_quote(text)} with zone value is not allowed")
        if ip.ipv4_mapped is not None:
            raise NetworkError(f"IPv4-mapped IPv6 address {go_quote(text)} is not allowed")
    return Address(ip)


def parse_network(text: str) -> Cidr:
    """Parse a network; raises as `parse_address`."""
    prefix = (
        "network address parse error during conversion from string: "
        f"netip.ParsePrefix({go_quote(text)}): "
    )
    address_text, slash, bits_text = text.rpartition("/")
    if not slash:
        raise NetworkError(f"{prefix}no '/'")
    ip = _parsed(address_text)
    if ip is None or getattr(ip, "scope_id", None) is not None:
        raise NetworkError(f"{prefix}{address_error(address_text)}")
    is_number = bits_text.isascii() and bits_text.isdigit() and len(bits_text) <= 3
    if not is_number or (len(bits_text) > 1 and bits_text[0] == "0"):
        raise NetworkError(f"{prefix}bad bits after slash: {go_quote(bits_text)}")
    if int(bits_text) > ip.max_prefixlen:
        raise NetworkError(f"{prefix}prefix length out of range")
    if isinstance(ip, ipaddress.IPv6Address) and ip.ipv4_mapped is not None:
        raise NetworkError(f"IPv4-mapped IPv6 address {go_quote(text)} is not allowed")
    return Cidr(Address(ip), int(bits_text))


def _parsed(text: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    if len(text) > _TEXT_MAX_CHARS:
        return None
    try:
        return ipaddress.ip_address(text)
    except ValueError:
        return None
