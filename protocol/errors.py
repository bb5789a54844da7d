"""Errors for people: source, object, field, value, and the rule that was broken."""

from __future__ import annotations

VALUE_MAX_CHARS = 80
"""Maximum length of a value in an error."""


class RoadsteadError(Exception):
    """Base class of all failures that Roadstead reports itself."""


def cut_short(value: object) -> str:
    """Return `repr` of a value from outside, cut at `VALUE_MAX_CHARS`; safe for hostile values."""
    if isinstance(value, str):
        text = repr(value[: VALUE_MAX_CHARS + 1]) if len(value) > VALUE_MAX_CHARS else repr(value)
        text = '"' + text[1:-1].replace('"', '\\"') + '"'
    elif isinstance(value, int) and value.bit_length() > 256:
        text = f"an integer of {value.bit_length()} bits"
    elif isinstance(value, (dict, list, tuple)):
        text = f"{type(value).__name__} of {len(value)}"
    else:
        text = repr(value)
    return text if len(text) <= VALUE_MAX_CHARS else text[: VALUE_MAX_CHARS - 1] + "…"


def printable(text: str) -> str:
    """Escape all but newlines and printable characters, so that no text controls a terminal."""
    if text.isprintable():
        return text
    return "".join(
        char if char.isprintable() or char == "\n" else char.encode("unicode_escape").decode()
        for char in text
    )


class InputError(RoadsteadError):
    """Bad input: `source: Kind "name": field: value rule`. rule: what the value breaks.

    Empty fields are left out of the text. `value` is already cut short (see `cut_short`).
    """

    def __init__(
        self, rule: str, *, source: str = "", obj: str = "", field: str = "", value: str = ""
    ) -> None:
        self.rule, self.source, self.obj, self.field, self.value = rule, source, obj, field, value
        super().__init__(str(self))

    def __str__(self) -> str:
        where = [part for part in (self.source, self.obj, self.field) if part]
        what = f"{self.value} {self.rule}" if self.value else self.rule
        return ": ".join([*where, what])

    def at(self, *, source: str = "", obj: str = "", field: str = "") -> InputError:
        """Return the error with more context: source and object if missing, the field's prefix."""
        joined = field if not self.field else f"{field}.{self.field}" if field else self.field
        return InputError(
            self.rule,
            source=self.source or source,
            obj=self.obj or obj,
            field=joined.replace(".[", "["),
            value=self.value,
        )


class UnsupportedError(RoadsteadError):
    """A plugin does not support a field of a pod."""

    def __init__(self, plugin: str, obj: str, field: str) -> None:
        self.plugin, self.obj, self.field = plugin, obj, field
        where = "".join(f"{part}: " for part in (obj, field) if part)
        super().__init__(f"{where}is not supported by the plugin {plugin}")

    def __reduce__(self) -> tuple[type[UnsupportedError], tuple[str, str, str]]:
        return (UnsupportedError, (self.plugin, self.obj, self.field))


class IllegalTransitionError(RoadsteadError):
    """An event that the state machine does not allow in this state; nothing was changed."""
