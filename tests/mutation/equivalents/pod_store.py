"""Mutants of the pod store that change no result, see this package's docstring."""

from tests.mutation.equivalents.same import Same

SAME: tuple[Same, ...] = (
    Same(
        "roadstead/pod_store.py",
        "a pod that was here is not among those that ended",
        (("PodStore._file_by_state", "if was in self._ended_in: ...", "if True: ..."),),
    ),
)
