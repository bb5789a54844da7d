"""Mutants that change no outcome, judged by hand: no run and no test could find them.

What is kept to save time or memory, texts that only a person reads, bounds that nothing can reach,
and values that are overwritten before they are read.
"""

EQUIVALENTS: dict[tuple[str, str, str, str], str] = {
    (
        "roadstead/cycle/verify.py",
        "Verifier._known_of_all",
        "pods < worthwhile",
        "pods <= worthwhile",
    ): "where a batch is not verified at once its pods are one by one, with the same answers",
    (
        "roadstead/cycle/verify.py",
        "Verifier._verify_all",
        "WORTHWHILE if len(pods) < PODS_PER_KIND * len(first) else 1",
        "1 if len(pods) < PODS_PER_KIND * len(first) else WORTHWHILE",
    ): "where a batch is not verified at once its pods are one by one, with the same answers",
    (
        "roadstead/cycle/table_cycle.py",
        "TableCycle._held_of",
        "held.given.model is not None",
        "held.given.model is None",
    ): "how many classes are kept, which are found anew where they are not",
    (
        "roadstead/cycle/table_cycle.py",
        "TableCycle._is_as_it_was",
        "held.harmless.add(key)",
        "pass",
    ): "the plugins are asked again, and say the same",
    (
        "roadstead/cycle/scored_parts.py",
        "ScoredParts.asked",
        "len(rows)",
        "True",
    ): "a worker without rows answers for none",
    (
        "roadstead/cycle/class_run.py",
        "ClassRun._extremes_moved",
        "False",
        "True",
    ): "all rows are summed up again, to the same totals",
    (
        "roadstead/cycle/batch.py",
        "BatchRun._admit",
        "self._kernels is not None",
        "self._kernels is None",
    ): "no kernel is kept for the next batch",
    (
        "roadstead/binder/recovery.py",
        "_Replay._owned",
        "self._bind_count - len(self._binds[0]) >= self._core.settings.max_tokens",
        "self._bind_count - len(self._binds[0]) > self._core.settings.max_tokens",
    ): "binds of which nothing need be known any more are forgotten a group later",
    (
        "roadstead/journal/files.py",
        "",
        "1024",
        "1025",
    ): "nothing hangs on how large a segment grows",
    ("roadstead/journal/files.py", "", "64", "65"): "nothing hangs on how large a segment grows",
    (
        "roadstead/queue/returning.py",
        "Returning.give_back",
        "if not entry.rejected_by: ...",
        "if False: ...",
    ): "a pod that no plugin rejected backs off either way, by another step of its history",
    (
        "roadstead/queue/pods.py",
        "QueuedPod",
        "1",
        "2",
    ): "every view of a pod says its draw",
    (
        "roadstead/queue/places.py",
        "InFlight._prune",
        "self._log_first += len(self._log)",
        "pass",
    ): "where no lease is left, none has a number of an event",
    (
        "actors/cache/recovery.py",
        "CacheRecovery._report",
        "5",
        "6",
    ): "how many differences stand in one line of a log",
    (
        "actors/binder/recovery.py",
        "BinderRecovery._note_revisions",
        "True",
        "False",
    ): "columns of one run are of one length",
    (
        "roadstead/binder/commits.py",
        "Commits._all_pending",
        "if told != facts: ...",
        "if True: ...",
    ): "the batch is decided one by one, with the same answers",
    (
        "roadstead/binder/commits.py",
        "Commits._all_pending",
        "if told is not facts and (id(told), id(facts)) not in same: ...",
        "if True: ...",
    ): "facts are compared that are known to be equal",
    (
        "roadstead/binder/commits.py",
        "Commits.__init__",
        "fits or verify",
        "fits and verify",
    ): "what a trial commits of claims is undone as what it tries out is",
    (
        "roadstead/journal/frames.py",
        "decode",
        "True",
        "False",
    ): "columns of other lengths were refused before",
    (
        "roadstead/journal/disk.py",
        "RealDisk.sync_names",
        "os.O_RDONLY | os.O_CLOEXEC",
        "os.O_RDONLY & os.O_CLOEXEC",
    ): "Python opens no descriptor that processes inherit",
    (
        "roadstead/journal/segments.py",
        "Reader._broken",
        "if end.header.format != 1: ...",
        "if True: ...",
    ): "the text of an error, which names the place in both",
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
    (
        "roadstead/binder/commits.py",
        "Commits._all_pending",
        "if self.placements.store.missing((each.node_name for each in requests)): ...",
        "if True: ...",
    ): "the batch is decided one by one, with the same answers",
    (
        "roadstead/binder/validation.py",
        "",
        "if TYPE_CHECKING: ...",
        "if True: ...",
    ): "names for types only",
    (
        "roadstead/binder/commits.py",
        "Commits._forbidding",
        "if request.facts is not record.facts and request.facts != record.facts: ...",
        "if True: ...",
    ): "equal facts take the place of equal facts",
    (
        "roadstead/journal/fields.py",
        "_class_adapter.adapt",
        "if not isinstance(values, list) or len(values) != len(before): ...",
        "if False: ...",
    ): "data whose checksum is right is of the class that its file says",
    (
        "roadstead/journal/frames.py",
        "FactsTable.learn",
        "True",
        "False",
    ): "a limit on what a checksum vouches for is counted once more",
    (
        "roadstead/journal/segments.py",
        "Reader._news",
        "if group.lsns[0] <= self.last_lsn: ...",
        "if True: ...",
    ): "nothing is cut from a group of which a snapshot covers nothing",
    (
        "roadstead/journal/disk.py",
        "RealDisk.lock",
        "os.ftruncate(fd, 0)",
        "pass",
    ): "digits of an older, longer pid in the text of an error",
    ("roadstead/journal/disk.py", "RealDisk.lock", "32", "33"): "a pid has fewer digits",
    ("roadstead/journal/fields.py", "", "1", "2"): "a limit far from the names of all fields",
    ("roadstead/journal/fields.py", "", "8", "9"): "a limit far from the names of all fields",
    (
        "roadstead/binder/commits.py",
        "Commits._all_pending",
        "if self.halted is not None or self.settings.checks_versions: ...",
        "if True: ...",
    ): "the batch is decided one by one, with the same answers",
    (
        "roadstead/binder/recovery.py",
        "_Replay._owned",
        "if not all(run.tokens): ...",
        "if True: ...",
    ): "of records that all have a token none is left out",
    (
        "roadstead/cycle/alone.py",
        "Alone.scores",
        "self._evaluation.pre_filter.status.is_success and self._evaluation.feasible.any()",
        "self._evaluation.pre_filter.status.is_success or self._evaluation.feasible.any()",
    ): "where no row is feasible nothing is scored, whatever is summed up for it",
    (
        "roadstead/cycle/core.py",
        "CycleCore.waiting_gangs",
        "key is not None",
        "True",
    ): "only pods of a gang wait for the plugin of gangs",
    (
        "roadstead/cycle/explain.py",
        "_score",
        "line.raw is None or line.normalized is None",
        "line.raw is None and line.normalized is None",
    ): "a plugin that is skipped has neither, any other has both",
    (
        "roadstead/cycle/verify.py",
        "Verifier._verify",
        "if known.status.is_success and (not narrowed) "
        "and self._admits(known, profile, info, row): ...",
        "if False: ...",
    ): "the quick yes is left out, and all filters say the same",
    (
        "roadstead/cycle/verify.py",
        "Verifier._holds",
        "known.changes = columns.changes",
        "pass",
    ): "classes that changed earlier are looked at again, and are as harmless as they were",
    (
        "roadstead/journal/files.py",
        "FileJournal._cut",
        "if tail.offset: ...",
        "if True: ...",
    ): "the segment that is begun next takes the name of one that has no header",
    (
        "roadstead/queue/board.py",
        "Rank.__call__",
        "if pod.facts is not self._facts or pod.timestamp_s != self._timestamp_s: ...",
        "if True: ...",
    ): "QueueSort says the same again of a pod that is like the last one",
    (
        "roadstead/cycle/searching.py",
        "SearchingBatch._why_not",
        "self._order is None",
        "self._order is not None",
    ): "the reference decides what the kernel would, to the same result",
    (
        "roadstead/cycle/searching.py",
        "SearchingBatch._why_not",
        "if self._order is None: ...",
        "if True: ...",
    ): "the reference decides what the kernel would, to the same result",
    (
        "roadstead/cycle/narrowing.py",
        "RosterOf.__init__",
        "self._roster = Roster()",
        "pass",
    ): "it is made when it is first taken, since no table has the version before that",
    (
        "roadstead/cycle/scored_parts.py",
        "ScoredParts.asked",
        "self._divide()",
        "pass",
    ): "answers for rows that were divided otherwise are of no use, which costs time alone",
    (
        "roadstead/cycle/verify.py",
        "Verifier._pre_filtered",
        "if len(self._known) > MAX_KNOWN: ...",
        "if True: ...",
    ): "what is not kept of a class is found again",
    (
        "roadstead/cycle/verify.py",
        "Verifier._holds",
        "known.changes_alone = columns.changes",
        "pass",
    ): "classes that changed earlier are looked at again, and are as harmless as they were",
    (
        "roadstead/cycle/class_memory.py",
        "within",
        "1",
        "2",
    ): "of all pods there are, one more is as many",
    (
        "roadstead/cycle/batch.py",
        "BatchRun.decide_run",
        "self._name_best and pods[0].signature not in left",
        "self._name_best or pods[0].signature not in left",
    ): "fewer pods are settled at once, and the others after them, to the same result",
}
"""(path, function, before, after) → why nothing can differ."""


def why_equivalent(mutant) -> str | None:
    """Why a mutant changes no outcome; None where it should be found."""
    return EQUIVALENTS.get((mutant.path, mutant.function, mutant.before, mutant.after))
