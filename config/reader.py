"""Reading of one YAML or JSON document as plain values, within the bounds of a configuration.

`protocol.documents` reads the text; this module adds tighter bounds (aliases count as often as they
are expanded, so that nothing is large when it is printed) and Go's conversion of YAML to JSON.
Upstream: sigs.k8s.io/yaml (YAMLToJSONStrict).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, TypeAlias

from roadstead.config.errors import ConfigError, Problem
from roadstead.config.files import MAX_TEXT_BYTES
from roadstead.protocol.documents import read_documents
from roadstead.protocol.errors import VALUE_MAX_CHARS, InputError

# Bounds of one document; those of manifests are wider.
MAX_DEPTH: Final = 64
MAX_VALUES: Final = 100_000

_CHARS_PER_VALUE: Final = 100
"""A long string counts as one value more for each of these characters."""

_EXACT_FLOAT_MAX: Final = 1e21
"""Go writes larger floats with an exponent, and its decoder reads such a text as no integer."""

KeyPath: TypeAlias = tuple[str | int, ...]
"""Keys and list indices, from the top of the document to a value."""


def read_document(text: str | bytes, *, source: str, max_bytes: int = MAX_TEXT_BYTES) -> object:
    """Read the one document of a text; None if it is empty. Raises ConfigError(stage="decode")."""
    try:
        data = text.encode("utf-8") if isinstance(text, str) else text
        documents = list(read_documents(data, source=source, max_bytes=max_bytes))
    except UnicodeEncodeError:
        raise _refused("is not UTF-8 text", source) from None
    except InputError as error:
        problem = Problem(error.field, error.rule, value=error.value or None)
        raise ConfigError("decode", [problem], source=source) from None
    if len(documents) > 1:
        raise _refused("holds more than one document; a configuration is one", source)
    converter = _Converter(source, is_json=data.lstrip()[:1] == b"{")
    return converter.convert(documents[0], ()) if documents else None


def _refused(problem: str, source: str, path: KeyPath = ()) -> ConfigError:
    shown = (part if isinstance(part, int) else part[:VALUE_MAX_CHARS] for part in path)
    return ConfigError("decode", [Problem(join_path("", shown), problem)], source=source)


class _Converter:
    """Convert values as Go does from YAML to JSON, and count them."""

    def __init__(self, source: str, *, is_json: bool) -> None:
        self.source, self.is_json = source, is_json
        self.values_left = MAX_VALUES

    def convert(self, value: object, path: KeyPath) -> object:
        """Return the converted value; ConfigError if it is too deep or too large."""
        self._count_values(1, path)
        if len(path) >= MAX_DEPTH:
            raise _refused(f"is nested deeper than {MAX_DEPTH} levels", self.source)
        if isinstance(value, dict):
            return {
                self._convert_text(k, path): self.convert(v, (*path, k)) for k, v in value.items()
            }
        if isinstance(value, list):
            return [self.convert(item, (*path, i)) for i, item in enumerate(value)]
        if isinstance(value, str):
            return self._convert_text(value, path)
        if isinstance(value, float) and value.is_integer() and not self.is_json:
            # From YAML, Go reads a number without a fraction ("1.0", "1e3") as an integer.
            return int(value) if abs(value) < _EXACT_FLOAT_MAX else value
        return value

    def _convert_text(self, text: str, path: KeyPath) -> str:
        self._count_values(len(text) // _CHARS_PER_VALUE, path)
        # JSON can encode half a surrogate pair; Go reads it as U+FFFD.
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")

    def _count_values(self, count: int, path: KeyPath) -> None:
        self.values_left -= count
        if self.values_left < 0:
            problem = f"stands for more than {MAX_VALUES} values (aliases count in full)"
            raise _refused(problem, self.source, path)


def join_path(path: str, loc: Iterable[str | int]) -> str:
    """Join a path as upstream writes it: `profiles[0].plugins`."""
    for part in loc:
        path += f"[{part}]" if isinstance(part, int) else f".{part}" if path else part
    return path
