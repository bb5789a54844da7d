"""The life of one pod of a simulated run, and why it was where it was: `roadstead why`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from roadstead.api.explanation import PodExplanation
from roadstead.api.pod_story import Attempts, PodStory, StoredPod, StoryEntry, read_story
from roadstead.protocol.errors import InputError
from roadstead.simulator.replay import Moment


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class PodLife:
    """The result of `SimulationResult.why`.

    story: the life of the pod, from the tables. moment: where the pod was at the explained time,
    and the explanation for that time; None if the run was not played again. unexplained: why it
    could not be played again, or "".
    """

    story: PodStory
    moment: Moment | None = None
    unexplained: str = ""

    def __repr__(self) -> str:
        pod = self.pod
        if pod.node is None:
            state = f"tried {sum(each.count for each in self.attempts):,} times"
        else:
            state = f"bound to {pod.node}"
        ending = f", {pod.ending}" if pod.ending else ""
        return f"<PodLife {pod.uid} in {self.story.run}: {state}{ending}>"

    @property
    def pod(self) -> StoredPod:
        """The row of the pod: created_us, bound_us, started_us, ended_us, ending, node, …"""
        return self.story.pod

    @property
    def attempts(self) -> tuple[Attempts, ...]:
        """The attempts to bind it; equal ones in succession are one."""
        return self.story.attempts

    @property
    def changes(self) -> tuple[StoryEntry, ...]:
        """The last changes between the failed attempts of a pod that waited and its bind.

        Of its node: pods that ended there. Of the whole fleet: changed nodes, and events.
        """
        return self.story.changes

    @property
    def explanation(self) -> PodExplanation | None:
        """Node by node and plugin by plugin, at the bind or another time; None if not played."""
        no_notes = ()
        return None if self.moment is None else PodExplanation(no_notes, self.moment.explanation)

    def document(self) -> dict[str, object]:
        """Return the JSON of `roadstead why --format json`."""
        moment = self.moment
        return asdict(self.story) | {
            "explained_at_us": None if moment is None else moment.time_us,
            "explanation": None if moment is None else moment.explanation.document(),
        }


def life_of(
    path: Path,
    run: str,
    name: str,
    at_us: int | None,
    plugins: Sequence[str],
    *,
    is_from_tables: bool = False,
) -> PodLife:
    """Return the life of a pod.

    path: folder of one run. run: its name. name: of the pod. at_us: the time to explain; None for
    the bind. is_from_tables: the run is not played again. Raises InputError for a name or time that
    is wrong, and for a time of a run that cannot be played again.
    """
    story = read_story(path, run, name)
    if is_from_tables or (at_us is None and story.pod.bound_us is None):
        return PodLife(story)
    # Imported here: playing needs the compiled kernel, which takes long to import.
    from roadstead.api.simulation_steps import explain_recorded

    try:
        return PodLife(story, explain_recorded(path, run, story.pod.number, at_us, plugins))
    except InputError as error:
        if at_us is not None:
            raise
        return PodLife(story, unexplained=str(error))
