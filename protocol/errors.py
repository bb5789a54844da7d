"""Errors that a person sees: where, which object, which field, what stood there, and the rule."""

from __future__ import annotations

VALUE_MAX_CHARS = 80


class RoadsteadError(Exception):
    """Any operating failure that Roadstead reports by itself."""


def cut_short(value: object) -> str:
    """`repr` of a value from outside, cut at `VALUE_MAX_CHARS`; safe for hostile values."""
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
    """A text in which nothing moves a terminal's cursor: all but lines and print is escaped."""
    if text.isprintable():
        return text
    return "".join(
        char if char.isprintable() or char == "\n" else char.encode("unicode_escape").decode()
        for char in text
    )


class InputError(RoadsteadError):
    """Bad input: `source: Kind "name": field: value: rule`.

    Fields left empty are left out of the text. `value` is already cut short (see `cut_short`).
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
        """The same error, told from further out: fills in what is not known yet."""
        joined = field if not self.field else f"{field}.{self.field}" if field else self.field
        return InputError(
            self.rule,
            source=self.source or source,
            obj=self.obj or obj,
            field=joined.replace(".[", "["),
            value=self.value,
        )


class UnsupportedError(RoadsteadError):
    """A run needs a plugin or a feature that is known by name but not there yet."""

    def __init__(self, plugin: str, obj: str, field: str) -> None:
        self.plugin, self.obj, self.field = plugin, obj, field
        super().__init__(
            f"{obj}: {field}: needs the plugin {plugin}, which this version does not have yet"
        )

    def __reduce__(self) -> tuple[type[UnsupportedError], tuple[str, str, str]]:
        return (UnsupportedError, (self.plugin, self.obj, self.field))


class IllegalTransitionError(RoadsteadError):
    """An event that the state machine does not allow in this state; nothing was changed."""
