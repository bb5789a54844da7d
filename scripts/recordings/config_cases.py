"""Recorded configurations: what is effective after defaults and merging, or why it is refused.

Of a refusal to decode, only the stage and the names of fields are compared, since Go's decoders
write its text.
"""

from __future__ import annotations

import re

from roadstead.config.errors import ConfigError
from roadstead.config.load import load_config
from scripts.recordings.result import Json, differing


def check_config(case: Json) -> tuple[Json, list[str]]:
    """Return our answer for a recorded configuration, and how it differs."""
    text = case["input"]
    assert isinstance(text, str)
    try:
        loaded = load_config(text, source="scheduler.yaml", as_upstream=True)
    except ConfigError as refused:
        ours: Json = {"valid": False, "stage": refused.stage, "errors": list(refused.errors)}
        if case.get("stage") == refused.stage == "decode":
            return ours, _unnamed(refused, case)
    else:
        ours = {"valid": True, "effective": loaded.effective(), "defaulted": loaded.document}
    compared = ("valid", "effective", "defaulted", "stage", "errors")
    return ours, differing(ours, {key: case[key] for key in compared if key in case})


def _unnamed(refused: ConfigError, case: Json) -> list[str]:
    """Return a difference if upstream's refusal names fields that ours does not."""
    errors = case["errors"]
    assert isinstance(errors, list)
    fields = {problem.field for problem in refused.problems}
    fields |= {_short(field) for field in fields}
    missing = sorted(_upstream_fields(str(errors[0])) - fields)
    return [f"errors: {sorted(fields)} do not name {missing}"] if missing else []


def _upstream_fields(text: str) -> set[str]:
    """Return the field paths that a decode error of Go names."""
    prefix = re.search(r"decoding \.(\S+?): ", text)
    inside = f"{prefix[1]}.args." if prefix else ""
    fields = {inside + field for field in re.findall(r'unknown field "([^"]+)"', text)}
    paths = (field.split(".", 1)[1] for field in re.findall(r"struct field (\S+) of type", text))
    fields |= {_short(inside + path) for path in paths}
    return fields | set(re.findall(r"(line \d+): key", text))


def _short(field: str) -> str:
    """Remove indices, which Go omits from a struct's path, and columns from a field path."""
    return re.sub(r"\[\d+\]|, column \d+", "", field)
