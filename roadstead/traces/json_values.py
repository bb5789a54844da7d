"""JSON values of trace files, read by name, with errors that name line, field and value."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import cast

from roadstead.protocol.errors import InputError, cut_short
from roadstead.traces.files import ProgressMeter, open_bytes, read_lines

VALUE_MAX_CHARS = 64 << 20
"""Maximum length of one object of an array."""

CHUNK_BYTES = 1 << 20
_BLANKS = re.compile(r"\s*+")
REAL_MAX = sys.float_info.max


class JsonRow:
    """An object of a file.

    line: its line or, in an array, its number. position: for errors; by default "line N".
    """

    def __init__(self, source: str, line: int, value: object, *, position: str = "") -> None:
        self.source, self.line, self._position = source, line, position or f"line {line}"
        if not isinstance(value, dict):
            problem = "is not an object"
            raise InputError(problem, source=source, obj=self._position, value=cut_short(value))
        self._value = cast("Mapping[str, object]", value)

    def error(self, field: str, problem: str) -> InputError:
        """Return an error that names the field."""
        value = cut_short(self._value.get(field))
        return InputError(problem, source=self.source, obj=self._position, field=field, value=value)

    def get(self, field: str) -> object:
        return self._value.get(field)

    def child(self, field: str) -> JsonRow:
        """Return the object in a field; an empty one if it is null or missing."""
        value = self._value.get(field)
        if value is not None and not isinstance(value, dict):
            raise self.error(field, "is not an object")
        return JsonRow(self.source, self.line, value or {}, position=f"{self._position}: {field}")

    def children(self, field: str) -> list[JsonRow]:
        """Return the objects of the list in a field; none if it is null or missing."""
        value = self._value.get(field)
        if value is not None and not isinstance(value, list):
            raise self.error(field, "is not a list")
        return [
            JsonRow(self.source, self.line, each, position=f"{self._position}: {field}[{index}]")
            for index, each in enumerate(value or ())
        ]

    def text(self, field: str) -> str:
        """Return a string."""
        value = self._value.get(field)
        if not isinstance(value, str):
            raise self.error(field, "is not a text")
        return value

    def integer(self, field: str, default: int | None = None) -> int:
        """Return an int64, which may also be written as a string, as BigQuery writes it."""
        value = self._value.get(field)
        if value is None and default is not None:
            return default
        if isinstance(value, str) and len(value) <= 20 and value.removeprefix("-").isdecimal():
            value = int(value)
        if type(value) is not int or not -(1 << 63) <= value < 1 << 63:
            raise self.error(field, "is not an int64")
        return value

    def real(self, field: str) -> float | None:
        """Return a finite number from 0; None if it is null or missing."""
        value = self._value.get(field)
        if value is None:
            return None
        # Compared before it is converted: an integer of JSON may be larger than any float.
        if not isinstance(value, int | float) or type(value) is bool or abs(value) > REAL_MAX:
            raise self.error(field, "is not a number")
        if value < 0:
            raise self.error(field, "is negative")
        return float(value)

    def choice(self, field: str, names: Sequence[str]) -> int:
        """Return the index of one of the names, or an index that is written as a number.

        0 if the field is null or missing, as in protocol buffers.
        """
        value = self._value.get(field)
        if isinstance(value, str) and value in names:
            return names.index(value)
        number = self.integer(field, 0)
        if not 0 <= number < len(names):
            raise self.error(field, f"is none of {', '.join(names)}")
        return number


def read_json_lines(path: Path, meter: ProgressMeter) -> Iterator[JsonRow]:
    """Yield the objects of a file with one on each line. Empty lines are left out."""
    for line, text in read_lines(path, meter):
        if text.strip():
            yield JsonRow(str(path), line, _parsed(text, str(path), f"line {line}"))


def _parsed(text: str, source: str, position: str) -> object:
    try:
        return json.loads(text, parse_constant=_refuse_constant)
    except RecursionError:
        raise InputError("is nested too deep", source=source, obj=position) from None
    except ValueError as error:
        reason = str(error).partition(";")[0]
        raise InputError(f"is not JSON: {reason}", source=source, obj=position) from None


def _refuse_constant(text: str) -> float:
    raise ValueError(f"{text} is not a JSON number")


def read_json_array(path: Path, meter: ProgressMeter) -> Iterator[JsonRow]:
    """Yield the objects of a file that holds one array, without reading all of it."""
    source = str(path)
    with open_bytes(path, meter) as file:
        chars = _Chars(file.read, source)
        if chars.peek() != "[":
            raise InputError("is not a JSON array", source=source)
        chars.skip(1)
        number = 0
        while (char := chars.peek()) != "]":
            if number and char != ",":
                obj = f"object {number + 1}"
                raise InputError("lacks a comma before it", source=source, obj=obj)
            chars.skip(1 if number else 0)
            number += 1
            yield JsonRow(source, number, chars.value(number), position=f"object {number}")
        chars.skip(1)
        if not chars.is_at_end():
            raise InputError("has text after the end of its array", source=source)


class _Chars:
    """The text of a file; only the current object and what was read ahead are in memory.

    _at: where the next value is read. Values before it are not cut off one by one, as each cut
    would copy all text after it.
    """

    def __init__(self, read: Callable[[int], bytes], source: str) -> None:
        self._read, self._source = read, source
        self._text, self._at = "", 0
        # Bytes of a last character that is incomplete.
        self._undecoded = b""
        self._decoder = json.JSONDecoder(parse_constant=_refuse_constant)

    def peek(self) -> str:
        """Return the next character that is not a blank."""
        if self.is_at_end():
            raise InputError("is cut short", source=self._source)
        return self._text[self._at]

    def is_at_end(self) -> bool:
        """Whether only blanks follow."""
        while True:
            blanks = _BLANKS.match(self._text, self._at)
            assert blanks is not None
            self._at = blanks.end()
            if self._at < len(self._text):
                return False
            if not self._read_more():
                return True

    def skip(self, count: int) -> None:
        self._at += count

    def value(self, number: int) -> object:
        """Return the next value; while it is incomplete, double the text that is read of it."""
        position = f"object {number}"
        self.peek()
        while True:
            try:
                value, end = self._decoder.raw_decode(self._text, self._at)
            except RecursionError:
                raise InputError("is nested too deep", source=self._source, obj=position) from None
            except ValueError as error:
                if not self._read_more(len(self._text) - self._at):
                    reason = str(error).partition(":")[0]
                    problem = f"is not JSON, or cut short: {reason}"
                    raise InputError(problem, source=self._source, obj=position) from None
                if len(self._text) > VALUE_MAX_CHARS:
                    problem = f"is no JSON within {VALUE_MAX_CHARS} characters"
                    raise InputError(problem, source=self._source, obj=position) from None
            else:
                self._at = end
                return cast("object", value)

    def _read_more(self, at_least: int = 0) -> bool:
        """Read further bytes; return False at the end of the file."""
        read = self._read(max(CHUNK_BYTES, at_least))
        content = self._undecoded + read
        if not content:
            return False
        # The last character may be incomplete: its bytes are decoded with the next ones, if any.
        starts = (n for n in range(1, 4) if content[-n:][:1] >= b"\xc0")
        later_bytes = next(starts, 0) if read else 0
        end = len(content) - later_bytes
        self._undecoded = content[end:]
        try:
            decoded = content[:end].decode()
        except UnicodeDecodeError:
            raise InputError("is not UTF-8 text", source=self._source) from None
        self._text, self._at = self._text[self._at :] + decoded, 0
        return True
