"""Variants of a scenario: values in place of those at some of its keys.

A key is a path in the document, such as `workload.0.arrivals.poisson.per_hour`: each part is a key
of an object, or the number or name of an entry of a list; a name may contain dots. Two keys are no
paths: `config` sets the configuration of the scheduler, a file or a preset, and `plugin` names
plugins of the user, which a scenario itself cannot do.
"""

from __future__ import annotations

import copy
import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from itertools import islice
from pathlib import Path
from typing import Any, Final

from roadstead.config.reader import KeyPath, read_document
from roadstead.config.scenario.read import ScenarioFile, SourceText, read_scenario
from roadstead.config.scenario.schema import Scenario
from roadstead.config.scenario.structure import known_keys
from roadstead.protocol.documents import SIZE_MAX_BYTES
from roadstead.protocol.errors import InputError, cut_short

CONFIG: Final = "config"
"""Key of the scheduler's configuration. Its value is a file if one has this name, else a preset."""

PLUGIN: Final = "plugin"
"""Key of the user's plugins. A value is a plugin, as for `--plugin`, a list of them, or null."""

CONFIG_PATHS: Final = (("scheduler", "config"), ("scheduler", "preset"))
"""Paths that `config` sets: files, and presets. The value at each is a list."""

NEAR_NAMES_MAX: Final = 3
"""Number of similar names that an error suggests."""

NUMBER_MAX_CHARS: Final = 9
"""Maximum length of the number of an entry."""

SOURCE: Final = "--vary"
"""The option, as the source in errors."""


@dataclass(frozen=True, slots=True)
class Axis:
    """A key of a scenario, as written in `--vary`, and its values, each of which is simulated."""

    key: str
    path: KeyPath
    values: tuple[object, ...]


def read_axis(file: ScenarioFile, option: str) -> Axis:
    """Read `KEY=V1,V2,…`; a value is YAML.

    Raises InputError, for an unknown key with similar names.
    """
    key, separator, text = option.partition("=")
    if not separator or not text.strip():
        raise InputError("must be KEY=V1,V2,…", source=SOURCE, value=cut_short(option))
    values = read_document(f"[{text}]", source=f"{SOURCE} {cut_short(key)}")
    return axis_of(file, key, values if isinstance(values, list) else ())


def axis_of(file: ScenarioFile, key: str, values: Iterable[object]) -> Axis:
    """Return the axis of a key. Raises InputError as `read_axis`."""
    if isinstance(values, str | Mapping) or not isinstance(values, Iterable):
        raise InputError("must be a list of values", source=SOURCE, field=cut_short(key))
    listed = tuple(values)
    if not listed:
        raise InputError("has no values", source=SOURCE, field=cut_short(key))
    texts = [json.dumps(each, sort_keys=True, default=str) for each in listed]
    if len(set(texts)) < len(texts):
        raise InputError("has a value twice", source=SOURCE, field=cut_short(key))
    return Axis(key, path_of(file.document, key), listed)


def path_of(document: Mapping[str, object], key: str) -> KeyPath:
    """Return the path that a key names. Raises InputError with similar names."""
    if key in (CONFIG, PLUGIN):
        return (key,)
    path: KeyPath = ()
    value: object = document
    # The part of the key below `path`, with a dot after each name.
    remaining = f"{key}."
    while remaining:
        part = _part(value, remaining)
        remaining = remaining[len(part) + 1 :]
        step: str | int = part
        if isinstance(value, list):
            step = _entry(value, part, key)
            value = value[step]
        # None: a key that the document leaves out, or has without a value; the keys below it are
        # checked by the schema only.
        elif isinstance(value, dict) or value is None:
            _check_key(document, value or {}, path, part, key)
            value = value.get(part) if isinstance(value, dict) else None
        else:
            shown = ".".join(map(str, path))
            raise _refused(key, f"has {cut_short(value)} at {shown}, and nothing below it")
        path = (*path, step)
    return path


def _part(value: object, key: str) -> str:
    """Return the first part of a key: the name of a key or entry of `value`, which may have dots.

    Of several names that fit, the longest. The key ends with a dot.
    """
    part = key.partition(".")[0]
    if isinstance(value, dict):
        names: Iterable[str] = value
    elif isinstance(value, list) and not _is_number(part, value):
        names = (name for each in value for name in _names(each))
    else:
        return part
    return max((name for name in names if key.startswith(f"{name}.")), key=len, default=part)


def _is_number(part: str, entries: Sequence[object]) -> bool:
    # `int` refuses thousands of digits.
    is_short = len(part) <= NUMBER_MAX_CHARS
    return is_short and part.isascii() and part.isdecimal() and int(part) < len(entries)


def _check_key(
    document: Mapping[str, object], value: Mapping[str, object], path: KeyPath, part: str, key: str
) -> None:
    known_names = list(dict.fromkeys((*value, *known_keys(Scenario, path))))
    if not path:
        known_names += [CONFIG, PLUGIN]
    if part in known_names:
        return
    close = (
        get_close_matches(part, known_names, n=NEAR_NAMES_MAX)
        or list(islice(_paths_to(document, part), NEAR_NAMES_MAX))
        or sorted(value)[:NEAR_NAMES_MAX]
        or sorted(known_names)[:NEAR_NAMES_MAX]
    )
    raise _refused(key, f"has no key {cut_short(part)} (near: {', '.join(close)})")


def _paths_to(value: object, name: str, path: str = "") -> Iterator[str]:
    """Yield the whole keys of all values of a name: `nodes` → `fleet.0.generate.nodes`."""
    named = value.items() if isinstance(value, Mapping) else ()
    numbered = enumerate(value) if isinstance(value, list) else ()
    for part, below in (*named, *numbered):
        if part == name:
            yield f"{path}{part}"
        yield from _paths_to(below, name, f"{path}{part}.")


def _entry(entries: Sequence[object], part: str, key: str) -> int:
    if not entries:
        raise _refused(key, f"has no entry {cut_short(part)}: the list is empty")
    if _is_number(part, entries):
        return int(part)
    names = {name: number for number, each in enumerate(entries) for name in _names(each)}
    if part in names:
        return names[part]
    close = get_close_matches(part, names, n=NEAR_NAMES_MAX) or sorted(names)[:NEAR_NAMES_MAX]
    choices = ", ".join((f"0 to {len(entries) - 1}", *close))
    raise _refused(key, f"has no entry {cut_short(part)} (want {choices})")


def _names(entry: object) -> Iterator[str]:
    """Yield the names of an entry: its own, or that of an object in it, such as `deployment`."""
    if isinstance(entry, dict):
        for each in (entry, *entry.values()):
            if isinstance(each, dict) and isinstance(each.get("name"), str):
                yield each["name"]


def _refused(key: str, problem: str) -> InputError:
    return InputError(problem, source=SOURCE, field=cut_short(key))


def vary(file: ScenarioFile, values: Mapping[str, object]) -> ScenarioFile:
    """Return a scenario with other values at some keys.

    Raises InputError if there is no such key, or if the result is not a valid scenario.
    """
    document = copy.deepcopy(dict(file.document))
    # The document already has the keys of the scenario that `extends` names.
    document.pop("extends", None)
    for key, value in values.items():
        if key != PLUGIN:
            _put(file, document, path_of(document, key), value)
    assignments = ", ".join(f"{key}={cut_short(value)}" for key, value in values.items())
    source = f"{file.main.source} with {assignments}" if values else file.main.source
    varied = read_scenario(
        json.dumps(document),
        source=source,
        directory=file.main.directory,
        # As JSON, a document within the bounds may be larger than as YAML.
        max_bytes=SIZE_MAX_BYTES,
    )
    # main: the file of the scenario itself. origins: by top-level key, the file in which the key is
    # written, the main one or one that it extends; names of files below a key are relative to the
    # directory of that file.
    return replace(varied, main=file.main, origins=file.origins)


def plugins_of(values: Mapping[str, object]) -> tuple[str, ...]:
    """Return the plugins among the values of a variant. InputError for what names no plugin."""
    value = values.get(PLUGIN)
    names = value if isinstance(value, list | tuple) else [] if value is None else [value]
    for each in names:
        if not isinstance(each, str):
            rule = "must be MODULE:CLASS or FILE.py, a list of these, or null for none"
            raise InputError(rule, source=SOURCE, field=PLUGIN, value=cut_short(each))
    return tuple(names)


def _put(file: ScenarioFile, document: dict[str, object], path: KeyPath, value: object) -> None:
    if path == (CONFIG,):
        # `ScenarioFile.file` makes the path relative to the file in which the key is written.
        is_file = os.path.isfile(file.file(CONFIG_PATHS[0], str(value)))
        for each, is_chosen in zip(CONFIG_PATHS, (is_file, not is_file), strict=True):
            _put(file, document, each, [str(value)] if is_chosen else [])
        return
    if path in CONFIG_PATHS and not isinstance(value, list):
        value = [value]
    *above, key = path
    parent: Any = document
    for part in above:
        below = parent[part] if isinstance(part, int) else parent.get(part)
        # None: as in `path_of`.
        below = {} if below is None else below
        parent[part] = below
        parent = below
    parent[key] = value


def configs_of(file: ScenarioFile) -> list[str]:
    """Return the configurations of a scenario, as values of `config`."""
    return [*file.scenario.scheduler.config, *file.scenario.scheduler.preset]


def packed(file: ScenarioFile) -> dict[str, object]:
    """Return a scenario as plain data for another process; files that it names are not copied."""
    return {
        "document": json.dumps(dict(file.document)),
        "source": file.main.source,
        "directory": str(file.main.directory.resolve()),
        "origins": {
            key: [origin.source, str(origin.directory.resolve())]
            for key, origin in file.origins.items()
        },
    }


def unpacked(plain: Mapping[str, object]) -> ScenarioFile:
    """Return the scenario of `packed`. Raises InputError."""
    source, text = str(plain["source"]), str(plain["document"])
    document = read_document(text, source=source, max_bytes=SIZE_MAX_BYTES)
    assert isinstance(document, dict), "a packed scenario"
    # As in `vary`: the document has the keys of the scenario that `extends` names.
    document.pop("extends", None)
    text = json.dumps(document)
    directory = Path(str(plain["directory"]))
    varied = read_scenario(text, source=source, directory=directory, max_bytes=SIZE_MAX_BYTES)
    # The texts of the files are not packed, so errors cannot name their lines. Each origin gets the
    # JSON document instead.
    origins = plain["origins"]
    assert isinstance(origins, dict), "a packed scenario"
    return replace(
        varied,
        origins={
            key: SourceText(str(name), text, Path(str(folder)))
            for key, (name, folder) in origins.items()
        },
    )
