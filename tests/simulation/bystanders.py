"""Decision paths that no simulated run uses by itself: the plain cycle and its explanations.

A judge runs them for a sample of the pods that it judges, each time on a cluster built for that
pod, and compares every result with its own.
"""

from collections import Counter
from functools import cache
from unittest.mock import patch

from roadstead.cycle.batch import CompiledKernel, PodInCycle
from roadstead.cycle.plain_cycle import PlainCycle
from roadstead.facts.pod import PodIdentity, without_nomination
from roadstead.kernel import compiled_code
from roadstead.kernel.decision_counts import DecisionCounts
from roadstead.nodes.pod_class import PodClasses
from roadstead.nodes.table import NodeTable
from roadstead.run import build_node_search, build_profiles
from roadstead.storage import AssumedClaims

EXCLUDED = "excluded"


@cache
def compiled():
    """Return the compiled kernel whatever ran before in this process; None without numba.

    Schedulers do not notice that it is loaded, so a run does not depend on who called this
    function.
    """
    with patch.object(compiled_code, "_loaded", [*compiled_code._loaded]):
        try:
            return compiled_code.load()
        except ImportError:
            return None


class Bystanders:
    """members: the gangs' pods as the scheduler has them. bounds: the scheduler's own part of the
    nodes.

    opinions: the extender's answers, if there is an extender.
    """

    def __init__(self, plan, tie_break, members, bounds=None, opinions=None):
        self._plan, self._tie_break, self._members = plan, tie_break, members
        self._bounds, self._opinions, self._asked = bounds, opinions, 0

    def ask(self, pod, facts, world, view, wanted, start):
        """Return one line for each difference between a path's result and `view`.

        world: (nodes, [(identity, facts, node name)], [(facts, node name)] nominated, storage
        changes). view: the fields of an explanation that the judge computed. wanted: the judge's
        node, the number of feasible nodes, their best total, and how many nodes have it. start:
        start index of the search.
        """
        path = self._plain(world, start)
        asked = _asked(path, pod, facts)
        explanation = path.explain(asked)
        shown = _shown(explanation, view)
        if shown != view:
            yield f"plain explains {pod.key}: {_differing(shown, view)}"
        best = _best(view, view["node"])
        if (shown := tuple(sorted(explanation.best, key=str.encode))) != best:
            yield f"plain explains that {shown} are the best for {pod.key}, not {best}"
        decision = path.decide(asked)
        decided = decision.node_name, decision.feasible, decision.total, decision.best_size
        decided += _nominated(decision)
        if decided != wanted:
            yield f"plain decides {pod.key}: {decided}, not {wanted}"
        best = _best(view, decision.node_name) if path.names_best else ()
        if decision.best != best:
            yield f"plain names {decision.best} as the best for {pod.key}, not {best}"
        left = _nominations_left(world, facts, decision.node_name)
        if (found := _nominations(path.table, world)) != left:
            yield f"plain leaves {found} nominated behind {pod.key}, not {left}"
        if decision.node_name is not None:
            wanted = self._taken(world, start, asked, decision)
            storage = next(iter(path.profiles.values())).storage
            if wanted is not None and wanted != _claims_of(storage):
                yield f"plain takes other claims than those of {pod.key}: {storage.claims}"
            row = path.table.row_of(decision.node_name)
            here = path.table.pods(row).get(asked.pod_class, 0)
            path.forget(asked, decision.node_name)
            if path.table.pods(row).get(asked.pod_class, 0) != here - 1:
                yield f"plain forgets {pod.key}, and it is still there"

    def _taken(self, world, start, asked, decision):
        """Return the claims after a pod's claims are assumed, on a newly built cluster."""
        if not asked.pod_class.facts.may_bind_claims:
            return None
        other = self._plain(world, start)
        storage = next(iter(other.profiles.values())).storage
        node = other.table.facts(other.table.row_of(decision.node_name))
        AssumedClaims(storage).assume(asked.uid, asked.pod_class.facts, node)
        return _claims_of(storage)

    def _profiles(self, changes):
        def profiles_of(classes):
            profiles = build_profiles(self._plan, classes, members=self._members)
            if self._bounds is not None:
                profiles = {name: each.with_filter(self._bounds) for name, each in profiles.items()}
            storage = next(iter(profiles.values())).storage
            for change in changes:
                storage.apply(change)
            return profiles

        return profiles_of

    def _plain(self, world, start):
        nodes, running, nominated, changes = world
        classes = PodClasses()
        table = NodeTable(classes)
        for facts in nodes:
            table.add_node(facts)
        for who, facts, name in running:
            table.add_pod(name, classes.pod_class(facts), uid=who.uid, key=who.key)
        for facts, name in nominated:
            table.nominate(name, classes.pod_class(facts))
        profiles = self._profiles(changes)(classes)
        node_search = build_node_search(self._plan, self._opinions and self._opinions.caller_of)
        if node_search is not None:
            node_search.start = start
        self._asked += 1
        code = compiled() if self._asked % 2 else None
        compiled_kernel = CompiledKernel(code, DecisionCounts()) if code else None
        names_best = self._asked % 3 == 0
        path = PlainCycle(
            *(table, profiles, self._tie_break),
            name_best=names_best,
            node_search=node_search,
            compiled_kernel=compiled_kernel,
        )
        path.classes, path.profiles, path.names_best = classes, profiles, names_best
        return path


def _claims_of(storage):
    return storage.claims, storage.volumes, storage.devices.claims


def _asked(path, pod, facts):
    pod_class = path.classes.pod_class(facts)
    signature = path.profiles[facts.scheduler_name].signature_of(pod_class, pod.uid)
    return PodInCycle(pod.uid, pod.key, pod_class, signature, pod.attempt, pod.tie_break_number)


def _best(view, node_name):
    """Return the best nodes by name; a single node is the best even where scoring it fails."""
    if node_name is None:
        return ()
    return tuple(sorted(view["best"] or (node_name,), key=str.encode))


def _nominations_left(world, facts, node_name):
    """(node, facts) → number of nominations after a pod is placed and its own nomination is
    removed.
    """
    left = Counter((name, without_nomination(each)) for each, name in world[2])
    own = facts.nominated_node_name, without_nomination(facts)
    if node_name is not None and left[own]:
        left[own] -= 1
    return +left


def _nominations(table, world):
    """The nominations of a table, in the same form."""
    names = {name for _, name in world[2]}
    return Counter(
        {
            (name, pod_class.facts): count
            for name in names
            for pod_class, count in table.nominations.to(name).items()
        }
    )


def _nominated(decision):
    """The node to which an unplaced pod is nominated, and the number of victims."""
    tried = decision.post_filter
    if decision.node_name is not None or tried is None:
        return None, 0
    return tried.nominated_node, 0 if tried.chosen is None else len(tried.chosen.victims)


def _shown(explanation, view):
    """The contents of an explanation, in the fields of `view`."""
    entry = explanation.as_recorded()
    shown = {
        "node": view["node"],
        "feasible": entry["feasible"],
        "best": entry["best"],
        "message": entry.get("message", ""),
        "error": entry.get("cycleError", ""),
        "pre_filter": tuple(
            entry["preFilter"][each] for each in ("status", "skipped", "nodeNames")
        ),
        "pre_score_skipped": entry.get("preScoreSkipped", []),
        "best_total": entry.get("bestTotal"),
        "nominated_fits": entry.get("nominatedFits", False),
        "refused": _refused(explanation.names, entry),
    }
    post_filter = entry.get("postFilter")
    shown["post_filter"] = post_filter and {
        "status": post_filter["status"],
        "nominated": post_filter["nominatedNode"],
        "acceptable": post_filter.get("acceptable", []),
        "exhaustive": post_filter["exhaustive"],
        "candidates": [
            (each["node"], each["pods"], each["numPDBViolations"])
            for each in post_filter.get("candidates", ())
        ],
    }
    if view["scores"] is not None:
        shown["scores"] = {
            each["plugin"]: None
            if each.get("skipped")
            else (each["weight"], each["raw"], each["normalized"])
            for each in entry.get("scores", ())
        }
        shown["total"] = entry.get("total")
    else:
        shown |= {"scores": None, "total": entry.get("total") or None}
    return shown


def _refused(names, entry):
    """node → (code, plugin, reasons) of the nodes that a filter refused, EXCLUDED for the
    others.
    """
    statuses = [
        (each["code"], each["plugin"], tuple(each["reasons"]))
        for each in entry.get("filterStatuses", ())
    ]
    return {
        name: EXCLUDED if code < 0 else statuses[code - 1]
        for name, code in zip(names, entry.get("filter", [0] * len(names)), strict=True)
        if code
    }


def _differing(shown, view):
    return {name: (shown[name], view[name]) for name in view if shown[name] != view[name]}


def identity_of(uid, key):
    namespace, _, name = key.partition("/")
    return PodIdentity(uid, namespace, name)
