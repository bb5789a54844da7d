"""Objects that admission refuses: their source, notes on them, and the error that explains them.

They are neither placed nor pending: they would not exist in a cluster.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from roadstead.facts.compile import DEFAULT_NAMESPACE
from roadstead.inputs.find_pod import FoundPod, find_pod
from roadstead.inputs.loaded import Loaded
from roadstead.manifests.creation import RefusedObject
from roadstead.manifests.templates import OwnerKey, controller_key, kind_and_name, namespaced_name
from roadstead.protocol.errors import InputError
from roadstead.protocol.objects import Pod
from roadstead.report.not_created import group_not_created
from roadstead.report.pods import workload_name
from roadstead.report.result import NotCreated

GROUPS_SHOWN = 10
"""Maximum number of groups of equal refusals that notes name."""


def not_created(
    refused: Sequence[RefusedObject],
    pods: Iterable[Pod],
    owner_of: Mapping[OwnerKey, OwnerKey],
    sources: Mapping[OwnerKey, str],
) -> tuple[NotCreated, ...]:
    """Describe each refused object with its workload and source.

    pods: all pods, whose ephemeral volumes create some claims. owner_of: the owners of created
    replica sets, jobs and claims. sources: of the objects of manifests.
    """
    if not refused:
        return ()
    owners = {**{kind_and_name(each): controller_key(each) for each in pods}, **owner_of}
    return tuple(_not_created(each, owners, sources) for each in refused)


def _not_created(
    refused: RefusedObject, owners: Mapping[OwnerKey, OwnerKey], sources: Mapping[OwnerKey, str]
) -> NotCreated:
    manifest = refused.manifest
    key = kind_and_name(manifest)
    controller = manifest.metadata.controller
    if controller is not None:
        namespace = manifest.metadata.namespace or DEFAULT_NAMESPACE
        labels = manifest.metadata.labels.items()
        workload = workload_name(controller.kind, namespace, controller.name, labels)
        owner = controller_key(manifest)
    else:
        owner = owners.get(key, ("", "", ""))
        workload = f"{owner[0]} {owner[1]}/{owner[2]}" if owner[0] else ""
    # From the object to its owners, up to one that is in a manifest.
    while key not in sources and owner[0]:
        key, owner = owner, owners.get(owner, ("", "", ""))
    name = "/".join(namespaced_name(manifest))
    source = sources.get(key, "")
    return NotCreated(type(manifest).__name__, name, workload, source, refused.reason)


def not_created_notes(objects: Sequence[NotCreated]) -> Iterator[str]:
    """Yield a line for each group of equal refusals: the objects, their source, and the reason."""
    groups = group_not_created(objects)
    for each in groups[:GROUPS_SHOWN]:
        first = each.first
        source = f" ({first.source})" if first.source else ""
        what = f"{first.kind} {first.name}"
        if each.count > 1:
            what += f" and {each.count - 1:,} more"
        by = f" of {first.workload}" if first.workload else ""
        yield f"Not created: {what}{by}{source}: {first.reason}"
    if more := sum(each.count for each in groups[GROUPS_SHOWN:]):
        yield f"Not created: {more:,} more, for other reasons or of other workloads."


def find_created(loaded: Loaded, name: str) -> FoundPod:
    """Find a pod as `find_pod` does; an error says why a pod or a workload's pods are not created.

    Raises:
        InputError: there is no such pod, it is not clear which, or it is not created.
    """
    bare_name = name.rpartition("/")[2]
    pods = [each for each in loaded.not_created if each.kind == "Pod"]
    exact = [each for each in pods if name in (each.name, each.name.partition("/")[2])]
    if exact and not _is_name_of_created(loaded, name):
        raise _refusal(exact[0])
    try:
        return find_pod(loaded.inputs, name)
    except InputError:
        for each in pods:
            # A workload is "KIND NAMESPACE/NAME".
            keys = each.name, each.workload.partition(" ")[2]
            if name in keys or bare_name in [key.partition("/")[2] for key in keys if key]:
                raise _refusal(each) from None
        raise


def _is_name_of_created(loaded: Loaded, name: str) -> bool:
    identities = [identity for identity, _ in loaded.inputs.pending]
    identities += [identity for identity, _, _ in loaded.inputs.running]
    return any(name in (each.key, each.name) for each in identities)


def _refusal(refused: NotCreated) -> InputError:
    obj = f"{refused.kind} {refused.name}"
    return InputError(f"is not created: {refused.reason}", source=refused.source, obj=obj)
