"""Mutants of the invariants that change no result, see this package's docstring."""

from tests.mutation.equivalents.same import Same

SAME: tuple[Same, ...] = (
    Same(
        "roadstead/invariants/affinity.py",
        "without terms nothing is missing, and no term is looked at",
        (("unmet_affinity", "if not terms: ...", "if False: ..."),),
    ),
    Same(
        "roadstead/invariants/checker.py",
        "a pod that is on no node is removed from none",
        (("Checker._bind", "if before: ...", "if True: ..."),),
    ),
    Same(
        "roadstead/invariants/claim_binding.py",
        "pods without volumes break no rule of volumes",
        (
            (
                "ClaimBinding.bind",
                "facts is not None and facts.may_bind_claims",
                "facts is not None or facts.may_bind_claims",
            ),
            (
                "ClaimBinding.bind",
                "if facts is not None and facts.may_bind_claims: ...",
                "if True: ...",
            ),
        ),
    ),
    Same(
        "roadstead/invariants/history.py",
        "marks of other kinds have no token",
        (("TokenHistory.mark", "if record.subject.what == VOID: ...", "if True: ..."),),
    ),
    Same(
        "roadstead/invariants/order.py",
        "pods that are alike but for their priority get the same one, whichever",
        (("PendingOrder._group", "0", "1"),),
    ),
    Same(
        "roadstead/invariants/order.py",
        "the group of equal facts is looked up again, and is the same",
        (("PendingOrder._group", "if entry is None: ...", "if True: ..."),),
    ),
    Same(
        "roadstead/invariants/storage.py",
        "pods without volumes attach none",
        (("Storage.put", "if facts.volumes: ...", "if True: ..."),),
    ),
    Same(
        "roadstead/invariants/volume_limits.py",
        "volumes of other kinds name no claim, so none is found",
        (("_attached", "if volume.kind in (CLAIM, EPHEMERAL): ...", "if True: ..."),),
    ),
    Same(
        "roadstead/invariants/world.py",
        "a pod without such terms excludes nobody",
        (("World.put", "if facts.pod_anti_affinity: ...", "if True: ..."),),
    ),
)
