"""Readable amounts of resources, durations and counts."""

from __future__ import annotations

_BYTES = ("memory", "ephemeral-storage")
_BYTE_UNITS = (("TiB", 1 << 40), ("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10))
_MILLI = "-milli"


def is_bytes(resource: str) -> bool:
    return resource in _BYTES or resource.startswith("hugepages-")


def resource_title(resource: str) -> str:
    """The last part of a resource's name, without the unit."""
    return resource.rpartition("/")[2].removesuffix(_MILLI)


def human_amount(resource: str, amount: int) -> str:
    """An amount in natural units: cores, GiB, whole GPUs for `…-milli`, plain counts."""
    if resource == "cpu":
        return f"{_number(amount / 1000)} cores"
    if is_bytes(resource):
        return human_bytes(amount)
    if resource.endswith(_MILLI):
        return _number(amount / 1000)
    return f"{amount:,}"


def exact_amount(resource: str, amount: int) -> str:
    """Return an amount of a request without rounding: `2` or `1500m` CPUs, `3 GiB`, a count."""
    if resource == "cpu":
        return f"{amount // 1000}" if amount % 1000 == 0 else f"{amount}m"
    if is_bytes(resource):
        exact = ((unit, size) for unit, size in _BYTE_UNITS if amount and amount % size == 0)
        unit, size = next(exact, ("bytes", 1))
        return f"{amount // size:,} {unit}"
    return f"{amount:,}"


def human_bytes(amount: int) -> str:
    """Bytes in the largest binary unit of which there is at least one, up to TiB."""
    for unit, size in _BYTE_UNITS:
        if amount >= size:
            return f"{_number(amount / size)} {unit}"
    return f"{amount} B"


def _number(value: float) -> str:
    """Format with one decimal only if the value is below 100 and not whole."""
    decimals = 0 if value >= 100 or value == int(value) else 1
    return f"{value:,.{decimals}f}"


def significant(number: float, digits: int) -> str:
    """Format with `digits` significant digits; large numbers in full, not as 8.77e+03."""
    text = f"{number:.{digits}g}"
    return f"{float(text):,.0f}" if "e+" in text else text


def signed(number: float, digits: int = 3) -> str:
    """`+1.5`, `-0.2`, `0`."""
    text = significant(number, digits)
    return f"+{text}" if number > 0 else text


def human_seconds(seconds: float) -> str:
    # Rounded first: 999.6 ms is printed as 1.0 s.
    if round(seconds * 1000) < 1000:
        return f"{seconds * 1000:.0f} ms"
    if seconds < 120:
        return f"{seconds:.1f} s"
    return f"{int(seconds) // 60} min {int(seconds) % 60} s"


def counted(count: int, noun: str) -> str:
    """`1 node`, `2 nodes`."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def percent(fraction: float | None) -> str:
    return "–" if fraction is None else f"{fraction:.1%}"
