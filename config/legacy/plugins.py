"""Arguments, as written, of plugins that kube-scheduler 1.34 no longer has.

Upstream: kube-scheduler/config/v1beta1/types_pluginargs.go, validation_pluginargs.go of 1.22.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Final

from roadstead.config.errors import Problem, invalid
from roadstead.config.go_struct import Str
from roadstead.config.schema_args import Args


class V1NodeLabelArgs(Args):
    """Arguments of NodeLabel."""

    present_labels: list[Str] | None = None
    absent_labels: list[Str] | None = None
    present_labels_preference: list[Str] | None = None
    absent_labels_preference: list[Str] | None = None


class V1ServiceAffinityArgs(Args):
    """Arguments of ServiceAffinity."""

    affinity_labels: list[Str] | None = None
    anti_affinity_labels_preference: list[Str] | None = None


REMOVED_ARGS_MODELS: Final[Mapping[str, type[Args]]] = MappingProxyType(
    {"NodeLabel": V1NodeLabelArgs, "ServiceAffinity": V1ServiceAffinityArgs}
)
"""Plugin that 1.34 no longer has → model of its arguments."""


def validate_node_label(path: str, args: V1NodeLabelArgs) -> Iterator[Problem]:
    """Yield a problem for each label that is wanted both present and absent."""
    yield from _conflicts(path, "presentLabels", args.present_labels, args.absent_labels)
    yield from _conflicts(
        path,
        "presentLabelsPreference",
        args.present_labels_preference,
        args.absent_labels_preference,
    )


def _conflicts(
    path: str, field: str, present: list[str] | None, absent: list[str] | None
) -> Iterator[Problem]:
    absent_field = field.replace("present", "absent")
    for i, label in enumerate(present or ()):
        if label in (absent or ()):
            index = (absent or []).index(label)
            yield invalid(f"{path}.{field}[{i}]", label, f"conflict with {absent_field}[{index}]")
