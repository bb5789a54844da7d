"""What is said where a phase fails or leaves nothing over, in upstream's words.

Upstream: pkg/scheduler/framework/runtime/framework.go (RunPreFilterPlugins, RunFilterPlugins).
"""

from __future__ import annotations

from roadstead.protocol.status import Code, Status, unresolvable


def filter_status(plugin: str, status: Status) -> Status:
    """A Filter's status under the plugin's name: a refusal as it is, anything else as an Error."""
    if status.is_rejected:
        return Status(status.code, status.reasons, plugin)
    return Status(Code.ERROR, (f'running "{plugin}" filter plugin: {status.message}',), plugin)


def phase_failure(phase: str, status: Status) -> Status:
    """A plugin failed: the cycle ends with this."""
    text = f'running {phase} plugin "{status.plugin}": {status.message}'
    return Status(Code.ERROR, (text,), status.plugin)


def nothing_left(plugins: list[str]) -> Status:
    """The node names that several plugins narrow to have nothing in common."""
    if len(plugins) == 1:
        return unresolvable(f"node(s) didn't satisfy plugin {plugins[0]}")
    return unresolvable(f"node(s) didn't satisfy plugin(s) [{' '.join(plugins)}] simultaneously")
