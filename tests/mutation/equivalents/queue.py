"""Mutants of the queue that change no result, see this package's docstring."""

from tests.mutation.equivalents.same import Same

SAME: tuple[Same, ...] = (
    Same(
        "roadstead/queue/queue_store.py",
        "QueueSort says the same again of a pod that is like the last one",
        (
            (
                "CachedSortKey.__call__",
                "if pod.facts is not self._facts or pod.timestamp_s != self._timestamp_s: ...",
                "if True: ...",
            ),
        ),
    ),
    Same(
        "roadstead/queue/queue_store.py",
        "the time is compared only once there are facts, which come with it",
        (
            ("CachedSortKey.__init__", "0.0", "1.0"),
            ("CachedSortKey.__init__", "self._timestamp_s = 0.0", "pass"),
        ),
    ),
    Same(
        "roadstead/queue/queue_store.py",
        "what only validate() asserts",
        (("QueueStore._validate_leases", "if not self.in_flight.leases: ...", "if False: ..."),),
    ),
    Same(
        "roadstead/queue/gang_turns.py",
        "where it is nobody's turn, none ends",
        (("GangTurns.leased", "if self._turn is None: ...", "if False: ..."),),
    ),
    Same(
        "roadstead/queue/gangs.py",
        "where no pod is unschedulable, none of a gang gave up",
        (
            (
                "Gangs.activate_gangs",
                "if not gangs or not self._core.counts().unschedulable: ...",
                "if False: ...",
            ),
        ),
    ),
    Same(
        "roadstead/queue/hints.py",
        "strategies are only compared with each other",
        (("Strategy", "2", "3"),),
    ),
    Same(
        "roadstead/queue/hints.py",
        "a plugin that said Pending was asked before, and said no",
        (("_strategy_of_event", "plugin not in entry.pending", "True"),),
    ),
    Same(
        "roadstead/queue/hints.py",
        "events are asked about that can say no more than the ones before",
        (
            ("best_strategy", "break", "continue"),
            ("best_strategy", "if best == highest: ...", "if False: ..."),
        ),
    ),
    Same(
        "roadstead/queue/lease_order.py",
        "a pod that backs off is in no order; what is noted of it is overwritten later",
        (("LeaseOrder.picks", "if entry.state is QueueState.ACTIVE: ...", "if True: ..."),),
    ),
    Same(
        "roadstead/queue/nominator.py",
        "a limit on facts that are kept, and made anew where they are not",
        (("", "4096", "4097"),),
    ),
    Same(
        "roadstead/queue/nominator.py",
        "equal facts are found again",
        (
            (
                "Nominator.facts_for",
                "if len(self._cached_facts) >= MAX_CACHED_FACTS: ...",
                "if True: ...",
            ),
        ),
    ),
    Same(
        "roadstead/queue/nominator.py",
        "a pod without a nomination is left out where nominated ones are asked for",
        (("Nominator.index", "if node_name: ...", "if True: ..."),),
    ),
    Same(
        "roadstead/queue/containers.py",
        "a limit on what is kept of pods that left",
        (("", "1024", "1025"),),
    ),
    Same(
        "roadstead/queue/containers.py",
        "numbers of arrival are only compared with each other",
        (("ActiveQ.__init__", "1", "2"),),
    ),
    Same(
        "roadstead/queue/containers.py",
        "where both are equal there is nothing to drop",
        (("InFlight._prune", "oldest > self._log_first", "oldest >= self._log_first"),),
    ),
    Same(
        "roadstead/queue/containers.py",
        "where no lease is left, none has a number of an event",
        (
            ("InFlight._prune", "self._log_first += len(self._log)", "pass"),
            (
                "InFlight._prune",
                "self._log_first += len(self._log)",
                "self._log_first -= len(self._log)",
            ),
        ),
    ),
    Same(
        "roadstead/queue/containers.py",
        "how many entries of pods that left are kept",
        (
            (
                "EntryOrder.append",
                "if len(self._entries) > 2 * len(self._heap) + SLACK: ...",
                "if False: ...",
            ),
        ),
    ),
    Same(
        "roadstead/queue/containers.py",
        "pods that left are dropped from the list at once",
        (
            (
                "EntryOrder.append",
                "if len(self._entries) > 2 * len(self._heap) + SLACK: ...",
                "if True: ...",
            ),
        ),
    ),
    Same(
        "roadstead/queue/containers.py",
        "pods that left are dropped from the list one pod earlier",
        (
            (
                "EntryOrder.append",
                "len(self._entries) > 2 * len(self._heap) + SLACK",
                "len(self._entries) >= 2 * len(self._heap) + SLACK",
            ),
        ),
    ),
    Same(
        "roadstead/queue/containers.py",
        "how soon pods that left are dropped from the list",
        (("EntryOrder.append", "2 * len(self._heap) + SLACK", "2 * len(self._heap) - SLACK"),),
    ),
    Same(
        "roadstead/queue/pods.py",
        "after so many doublings any duration is at its maximum",
        (("QueueSettings.backoff_s", "64", "65"),),
    ),
    Same(
        "roadstead/queue/pods.py",
        "every view of a pod says its tie_break_number",
        (("QueuedPod", "1", "2"),),
    ),
    Same(
        "roadstead/queue/requeueing.py",
        "a pod that no plugin rejected backs off either way, by another step of its history",
        (("Requeueing.return_leased", "if not entry.rejected_by: ...", "if False: ..."),),
    ),
    Same(
        "roadstead/queue/nominator.py",
        "one class more or less is kept, which is made anew where it is not",
        (
            (
                "Nominator.facts_for",
                "len(self._cached_facts) >= MAX_CACHED_FACTS",
                "len(self._cached_facts) > MAX_CACHED_FACTS",
            ),
        ),
    ),
)
