"""Mutants that change no outcome, judged by hand: no run and no test could find them.

What is kept to save time or memory, texts that only a person reads, bounds that nothing can reach,
and values that are overwritten before they are read.
"""

EQUIVALENTS: dict[tuple[str, str, str, str], str] = {
    (
        "roadstead/cycle/verify.py",
        "Verifier._holds",
        "break",
        "continue",
    ): "classes that changed earlier are looked at for nothing",
    (
        "roadstead/invariants/affinity.py",
        "lonely",
        "if not terms: ...",
        "if False: ...",
    ): "without terms nothing is missing, and no term is looked at",
    (
        "roadstead/invariants/claim_binding.py",
        "ClaimBinding.bind",
        "facts is not None and facts.volumes",
        "facts is not None or facts.volumes",
    ): "pods without volumes break no rule of volumes",
    (
        "roadstead/invariants/lives.py",
        "Attempts.mark",
        "if record.subject.what == VOID: ...",
        "if True: ...",
    ): "marks of other kinds have no token",
    (
        "roadstead/invariants/order.py",
        "Order._group",
        "0",
        "1",
    ): "pods that are alike but for their priority get the same one, whichever",
}
"""(path, function, before, after) → why nothing can differ."""


def why_equivalent(mutant) -> str | None:
    """Why a mutant changes no outcome; None where it should be found."""
    return EQUIVALENTS.get((mutant.path, mutant.function, mutant.before, mutant.after))
