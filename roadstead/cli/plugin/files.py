"""The files that `roadstead plugin new` writes: a working plugin, and its test."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from roadstead.cli.schedule_run import write_text
from roadstead.protocol.errors import InputError, cut_short

_CLASS_NAME = re.compile(r"[A-Z][A-Za-z0-9]{0,62}")

_TABLE_TEMPLATE = '''"""{name}: prefers nodes with few pods."""

from collections.abc import Hashable

import numpy as np
from pydantic import Field

from roadstead.facts.pod import PodFacts
from roadstead.framework.arguments import PluginArguments
from roadstead.framework.cycle_state import CycleState
from roadstead.framework.plugin import Reads, ScorePlugin
from roadstead.nodes.columns import I64
from roadstead.nodes.pod_class import PodClass
from roadstead.nodes.table import Table


class Arguments(PluginArguments):
    max_pods: int = Field(default=100, ge=1)


class {name}(ScorePlugin):
    name = "{name}"
    reads = Reads.ROW  # the answer for a node depends on the numbers of its row
    arguments = Arguments

    def __init__(self, args: Arguments) -> None:
        self.args = args

    def score(self, state: CycleState, pod: PodClass, table: Table) -> I64:
        used = 100 * table.pod_count // self.args.max_pods
        return 100 - np.minimum(used, 100)

    def sign(self, pod: PodFacts) -> Hashable:
        return ()  # nothing of the pod is looked at
'''

_PER_NODE_TEMPLATE = '''"""{name}: prefers nodes with few pods."""

from collections.abc import Hashable

from pydantic import Field

from roadstead.facts.pod import PodFacts
from roadstead.framework.arguments import PluginArguments
from roadstead.framework.per_node import NodePlugin, NodeView
from roadstead.nodes.pod_class import PodClass


class Arguments(PluginArguments):
    max_pods: int = Field(default=100, ge=1)


class {name}(NodePlugin):
    name = "{name}"
    arguments = Arguments

    def __init__(self, args: Arguments) -> None:
        self.args = args

    def score(self, pod: PodClass, node: NodeView) -> int:
        return 100 - min(100 * node.pod_count // self.args.max_pods, 100)

    def sign(self, pod: PodFacts) -> Hashable:
        return ()  # nothing of the pod is looked at
'''

_TEST_TEMPLATE = '''"""{name} alone, and on sample fleets; run with pytest."""

from roadstead.testing import ask, check_plugin, node, pod


def test_a_node_with_fewer_pods_scores_higher():
    fleet = {{node("few"): [pod()], node("many"): [pod()] * 50, node("full"): [pod()] * 200}}

    assert ask("{module}:{name}", pod(), fleet).scores == (99, 50, 0)


def test_it_passes_every_check():
    check_plugin("{module}:{name}")
'''


@dataclass(frozen=True, slots=True)
class WrittenPlugin:
    """The files of a new plugin. path: MODULE:CLASS of the plugin, as for --plugin.

    files: the files that were written. kept: those that existed already and were not replaced.
    """

    path: str
    files: tuple[Path, ...]
    kept: tuple[Path, ...]


def write_plugin(name: str, directory: Path, *, per_node: bool, force: bool) -> WrittenPlugin:
    """Write the module and its test; existing files are kept unless `force` is set.

    Raises InputError for an invalid class name, or a file that cannot be written.
    """
    texts = plugin_texts(name, per_node=per_node)
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"cannot be made: {error.strerror}", source=str(directory)) from error
    kept = tuple(path for path in map(directory.joinpath, texts) if path.exists() and not force)
    files = tuple(path for path in map(directory.joinpath, texts) if path not in kept)
    for path in files:
        write_text(path, texts[path.name])
    return WrittenPlugin(f"{module_of(name)}:{name}", files, kept)


def plugin_texts(name: str, *, per_node: bool) -> Mapping[str, str]:
    """Return the texts of the plugin and of its test, by file name.

    Raises InputError for an invalid class name.
    """
    if not _CLASS_NAME.fullmatch(name):
        problem = "is not a name of a plugin class (want e.g. FewPods)"
        raise InputError(problem, field="NAME", value=cut_short(name))
    module = module_of(name)
    template = _PER_NODE_TEMPLATE if per_node else _TABLE_TEMPLATE
    return {
        f"{module}.py": template.format(name=name),
        f"test_{module}.py": _TEST_TEMPLATE.format(name=name, module=module),
    }


def module_of(name: str) -> str:
    """Return the module name of a plugin class: FewPods → few_pods, GPUShare → gpu_share."""
    # A word starts at a capital after a small letter, and at the last capital of several.
    words = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name)
    return words.lower()
