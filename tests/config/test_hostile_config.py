"""Hostile configurations: each is refused with a field and a rule, and the process survives."""

from __future__ import annotations

import json
import tracemalloc

import pytest

from roadstead.config.errors import ConfigError
from roadstead.config.files import MAX_TEXT_BYTES
from roadstead.config.load import load_config
from roadstead.protocol.errors import InputError

HEAD = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
LONGEST_MESSAGE = 4_000


def bomb(levels: int) -> str:
    rows = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    for i in range(levels):
        rows.append(f"a{i + 1}: &a{i + 1} [{', '.join([f'*a{i}'] * 10)}]")
    return "\n".join(rows)


def args_of(plugin: str, args: str) -> str:
    return f"{HEAD}profiles:\n- pluginConfig:\n  - name: {plugin}\n    args: {args}\n"


def document(**fields: object) -> str:
    kind = {"kind": "KubeSchedulerConfiguration"}
    return json.dumps({"apiVersion": "kubescheduler.config.k8s.io/v1", **kind, **fields})


HOSTILE: dict[str, tuple[str | bytes, str, str]] = {
    # name: (text, field, part of the rule)
    "alias bomb": (HEAD + bomb(9), "line 8", "more than 1000000 values"),
    "alias of a long text": (
        f"{HEAD}a: &a {'x' * 500_000}\nb: [{', '.join(['*a'] * 1000)}]",
        "",
        "100000 values",
    ),
    "alias of itself": (HEAD + "profiles: &p [*p]", "line 3", "contains it"),
    "alias of nothing": (HEAD + "profiles: *nothing", "line 3", "not defined"),
    "lists 100,000 deep": (HEAD + "profiles: " + "[" * 100_000, "", "deep"),
    "mappings 100,000 deep": (HEAD + "profiles: " + "{a: " * 100_000, "", "deep"),
    "JSON 100,000 deep": ('{"a":' * 100_000, "", "deep"),
    "JSON 100 deep": (document(profiles=json.loads("[" * 99 + "]" * 99)), "", "deep"),
    "blocks deeper than the limit": (
        HEAD + "\n".join(" " * i + "a:" for i in range(100)),
        "",
        "deep",
    ),
    "not a number": (HEAD + "parallelism: .nan", "line 3", "finite"),
    "infinity": (HEAD + "clientConnection: {qps: -.inf}", "line 3", "finite"),
    "JSON NaN": (document(parallelism=float("nan")), "", "NaN"),
    "JSON number beyond floats": (document(parallelism=0).replace("0", "1e400"), "", "too large"),
    "number with a huge exponent": (HEAD + "parallelism: 1e1000000", "line 3", "too large"),
    "number with a million digits": (
        HEAD + "parallelism: " + "9" * 1_000_000,
        "line 3",
        "too long",
    ),
    "JSON number with many digits": (
        document(parallelism=0).replace("0", "9" * 5_000),
        "",
        "5000 digits",
    ),
    "integer beyond int32": (HEAD + "parallelism: 2147483648", "parallelism", "32-bit"),
    "integer below int32": (HEAD + "parallelism: -2147483649", "parallelism", "32-bit"),
    "integer beyond int64": (
        HEAD + "podMaxBackoffSeconds: 9223372036854775808",
        "podMaxBackoffSeconds",
        "64-bit",
    ),
    "float beyond float32": (
        HEAD + "clientConnection: {qps: 1e39}",
        "clientConnection.qps",
        "32-bit float",
    ),
    "key twice": (
        HEAD + "parallelism: 1\nparallelism: 2",
        "line 4",
        'key "parallelism" is twice',
    ),
    "key twice, deep": (
        args_of("InterPodAffinity", "{hardPodAffinityWeight: 1, hardPodAffinityWeight: 2}"),
        "line 6",
        'key "hardPodAffinityWeight" is twice',
    ),
    "key twice in JSON": (
        document(parallelism=1).replace('"kind"', '"parallelism": 2, "kind"'),
        "",
        'key "parallelism" is twice',
    ),
    "50,000 keys, then one twice": (
        "{" + ",".join(f'"k{i}":0' for i in range(50_000)) + ',"k0":1}',
        "",
        'key "k0" is twice',
    ),
    "long key over many values": (
        f"{HEAD}? {'k' * 400_000}\n: [{', '.join('x' * 50_000)}, .nan]",
        "",
        "finite",
    ),
    "merge of a text": (HEAD + "<<: parallelism", "line 3", "only maps can be merged"),
    "list as key": (HEAD + "? [a]\n: b", "line 3", "key must be a string"),
    "empty key": (HEAD + "? ~\n: b", "line 3", "not a string"),
    "Python object": (HEAD + "profiles: !!python/object/apply:os.system [ls]", "line 3", "tag"),
    "foreign tag on a text": (HEAD + "profiles: !secret x", "line 3", "tag"),
    "binary": (HEAD + "profiles: !!binary aGk=", "profiles", "list"),
    "text for a number": (HEAD + 'parallelism: "16"', "parallelism", "integer"),
    "truth for a number": (HEAD + "parallelism: yes", "parallelism", "integer"),
    "number for a text": (HEAD + "profiles: [{schedulerName: 7}]", "profiles[0].schedulerName", ""),
    "number for a truth": (HEAD + "enableProfiling: 1", "enableProfiling", "true or false"),
    "mapping for a list": (HEAD + "profiles: {a: b}", "profiles", "list"),
    "list for a mapping": (HEAD + "leaderElection: []", "leaderElection", "mapping"),
    "list for arguments": (
        args_of("NodeResourcesFit", "[1, 2]"),
        "profiles[0].pluginConfig[0].args",
        "mapping",
    ),
    "number for a duration": (
        HEAD + "leaderElection: {leaseDuration: 15}",
        "leaderElection.leaseDuration",
        "unit",
    ),
    "nothing for a duration": (
        HEAD + "leaderElection: {leaseDuration: null}",
        "leaderElection.leaseDuration",
        "duration",
    ),
    "duration of ages": (
        HEAD + "leaderElection: {leaseDuration: 99999999999h}",
        "leaderElection.leaseDuration",
        "too long",
    ),
    "name of a million letters": (
        HEAD + "profiles: [{schedulerName: [" + "x" * 900_000 + "]}]",
        "profiles[0].schedulerName",
        "text",
    ),
    "unknown field of a million letters": (HEAD + "? " + "x" * 900_000 + "\n: 1", "", "unknown"),
    "40,000 unknown fields": (
        HEAD + "\n".join(f"f{i}: 1" for i in range(40_000)),
        "",
        "unknown field",
    ),
    "topology key of a million letters": (
        args_of(
            "PodTopologySpread",
            "{defaultingType: List, defaultConstraints: [{maxSkew: 1, "
            f"whenUnsatisfiable: DoNotSchedule, topologyKey: {'-' * 900_000}}}]}}",
        ),
        "profiles[0].pluginConfig[0].args.defaultConstraints[0].topologyKey",
        "63 characters",
    ),
    "text beyond the limit": ("#" * (MAX_TEXT_BYTES + 1), "", "bytes are more than"),
    "bytes that are not UTF-8": (b"\xc3\x28", "", "UTF-8"),
    "half a surrogate pair": ("kind: \ud800", "", "UTF-8"),
    "control characters": (HEAD + "a: \x00", "", "not YAML"),
    "an escape that is no character": (HEAD + 'a: "\\uD800"', "", "not YAML"),
    "tab for a space": (HEAD + "profiles:\n\t- a", "", "not YAML"),
    "two documents": (HEAD + "---\n" + HEAD, "", "more than one document"),
    "a list of configurations": ("- " + HEAD.replace("\n", "\n  "), "", "mapping"),
    "a text": ("hello", "", "mapping"),
    "neither JSON nor YAML": ('{"kind": x]', "line 1", "neither JSON nor YAML"),
    "kind that is a number": ("apiVersion: x\nkind: 7", "apiVersion", "not a version"),
}


def names(field: str, wanted: str) -> bool:
    """Whether an error names the path of a field, or a line if the text itself is invalid."""
    return not wanted or field == wanted or field.startswith(f"{wanted}, column ")


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_configuration_is_refused_with_field_and_rule_and_a_short_text(name: str) -> None:
    text, field, rule = HOSTILE[name]

    with pytest.raises(ConfigError) as refused:
        load_config(text, source="hostile.yaml")

    message = str(refused.value)
    assert isinstance(refused.value, InputError)
    assert message.startswith("hostile.yaml: ")
    assert any(names(problem.field, field) for problem in refused.value.problems)
    assert rule in message
    assert len(message) <= LONGEST_MESSAGE


def test_an_alias_bomb_is_refused_before_its_expansion() -> None:
    tracemalloc.start()
    with pytest.raises(ConfigError):
        load_config(HEAD + bomb(30), source="hostile.yaml")
    _, peak_bytes = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert peak_bytes < 16 << 20


def test_a_harmless_alias_is_read() -> None:
    text = HEAD + "parallelism: &n 8\npodMaxBackoffSeconds: *n\n"

    document = load_config(text, source="").document

    assert (document["parallelism"], document["podMaxBackoffSeconds"]) == (8, 8)


def test_a_lone_surrogate_in_json_becomes_the_replacement_character() -> None:
    text = document(profiles=[{"schedulerName": "\ud800x"}])

    loaded = load_config(text, source="")

    assert loaded.config.profiles[0].scheduler_name == "�x"
