"""Mutants of the binder that change no result, see this package's docstring."""

from tests.mutation.equivalents.same import Same

SAME: tuple[Same, ...] = (
    Same(
        "roadstead/binder/binder.py",
        "a batch that is not verified at once is decided one by one, with the same answers",
        (
            (
                "Binder._verify_prefix",
                "if not requests: ...",
                "if True: ...",
            ),
        ),
    ),
    Same(
        "roadstead/binder/binder_journal.py",
        "nothing hangs on when a snapshot replaces what was written",
        (
            ("", "1024", "1025"),
            ("", "256", "257"),
        ),
    ),
    Same(
        "roadstead/binder/binder_journal.py",
        "a revision of 0 is not learned",
        (
            ("BinderJournal._note_revisions", "if not any(records.epochs): ...", "if False: ..."),
            ("BinderJournal._note_revisions", "r.epoch", "True"),
        ),
    ),
    Same(
        "roadstead/binder/binder_journal.py",
        "a journal of exactly so many bytes is replaced as well",
        (
            (
                "BinderJournal.snapshot_if_grown",
                "journal.grown_bytes > SNAPSHOT_BYTES",
                "journal.grown_bytes >= SNAPSHOT_BYTES",
            ),
        ),
    ),
    Same(
        "roadstead/binder/binder_journal.py",
        "what is told beside the core stands in snapshots, which only a file journal has",
        (("BinderJournal.recover", "False", "True"),),
    ),
    Same(
        "roadstead/binder/binder_journal.py",
        "the text of a log, which only a person reads",
        (
            ("BinderJournal.recover", "if self._journal.tail is not None: ...", "if False: ..."),
            ("BinderJournal.recover", "if self._journal.tail is not None: ...", "if True: ..."),
            (
                "BinderJournal.recover",
                "self._journal.tail is not None",
                "self._journal.tail is None",
            ),
        ),
    ),
    Same(
        "roadstead/binder/binder_store.py",
        "whether the journal is told is asked for each node, to the same answer",
        (("BinderStore.add_nodes", "if self._journals_all: ...", "if True: ..."),),
    ),
    Same(
        "roadstead/binder/binder_store.py",
        "nodes come one after another, to the same state and records",
        (
            (
                "BinderStore.add_nodes",
                "if self.placements.are_unknown(nodes): ...",
                "if False: ...",
            ),
        ),
    ),
    Same(
        "roadstead/binder/commits.py",
        "where no pod of a gang fits each is refused for its own reason",
        (("Commits", "0", "1"),),
    ),
    Same(
        "roadstead/binder/commits.py",
        "claims that a dry run commits are undone as claims that are tried out",
        (("Commits.__init__", "dry_run or verify", "dry_run and verify"),),
    ),
    Same(
        "roadstead/binder/commits.py",
        "the batch is decided one by one, with the same answers",
        (
            (
                "Commits._records_if_all_pending",
                "epoch >= epochs.get(owner, epoch)",
                "epoch > epochs.get(owner, epoch)",
            ),
            (
                "Commits._records_if_all_pending",
                "if len(self._unflushed) + len(requests) > self.settings.max_unflushed: ...",
                "if True: ...",
            ),
            (
                "Commits._records_if_all_pending",
                "if not self._are_new(requests): ...",
                "if True: ...",
            ),
            (
                "Commits._records_if_all_pending",
                "if record is None or record.state is not BinderState.PENDING: ...",
                "if True: ...",
            ),
            (
                "Commits._records_if_all_pending",
                "if request.transaction or facts.pod_group is not None: ...",
                "if True: ...",
            ),
            (
                "Commits._records_if_all_pending",
                "if self.halted is not None or self.settings.checks_versions: ...",
                "if True: ...",
            ),
            (
                "Commits._records_if_all_pending",
                "if self.placements.store.missing((each.node_name for each in requests)): ...",
                "if True: ...",
            ),
            ("Commits._records_if_all_pending", "if requested != facts: ...", "if True: ..."),
            (
                "Commits._records_if_all_pending",
                "len(self._unflushed) + len(requests) > self.settings.max_unflushed",
                "len(self._unflushed) + len(requests) >= self.settings.max_unflushed",
            ),
            (
                "Commits._are_new",
                "if len(tokens) < count or len({each.uid for each in requests}) < count: ...",
                "if True: ...",
            ),
            ("Commits._are_new", "len(tokens) < count", "len(tokens) <= count"),
            (
                "Commits._are_new",
                "len({each.uid for each in requests}) < count",
                "len({each.uid for each in requests}) <= count",
            ),
            (
                "Commits._decide",
                "if records is not None: ...",
                "if False: ...",
            ),
        ),
    ),
    Same(
        "roadstead/binder/commits.py",
        "facts are compared that are known to be equal",
        (
            (
                "Commits._records_if_all_pending",
                "if requested is not facts and (id(requested), id(facts)) not in equal: ...",
                "if True: ...",
            ),
            ("Commits._records_if_all_pending", "equal.add((id(requested), id(facts)))", "pass"),
            (
                "Commits._records_if_all_pending",
                "requested is not facts and (id(requested), id(facts)) not in equal",
                "requested is not facts or (id(requested), id(facts)) not in equal",
            ),
        ),
    ),
    Same(
        "roadstead/binder/commits.py",
        "equal facts take the place of equal facts",
        (
            (
                "Commits._refusal",
                "if request.facts is not record.facts and request.facts != record.facts: ...",
                "if True: ...",
            ),
        ),
    ),
    Same(
        "roadstead/binder/commits.py",
        "where nothing stands together none is refused, and nothing is tried out",
        (
            (
                "Commits._refused_groups",
                (
                    "if all((r.facts.pod_group is None and (not r.transaction) for r in requests"
                    ")): ..."
                ),
                "if False: ...",
            ),
        ),
    ),
    Same(
        "roadstead/binder/pods.py",
        "a bound on memory, on which nothing else hangs",
        (
            ("BinderSettings", "100000", "100001"),
            ("BinderSettings", "65536", "65537"),
        ),
    ),
    Same(
        "roadstead/binder/recovery.py",
        "nothing is updated, and no pod is taken out",
        (
            ("_Replay._add", "if len(new_pods) < len(pods): ...", "if True: ..."),
            ("_Replay._add", "len(new_pods) < len(pods)", "len(new_pods) <= len(pods)"),
        ),
    ),
    Same(
        "roadstead/binder/recovery.py",
        "what is quick where all are new, or all nodes known, is found one by one as well",
        (
            ("_Replay._pods", "if any(known): ...", "if True: ..."),
            (
                "_Replay._versions",
                "if placements.version == before + len(nodes): ...",
                "if False: ...",
            ),
            ("_Replay._versions", "before + len(nodes)", "before - len(nodes)"),
        ),
    ),
    Same(
        "roadstead/binder/recovery.py",
        "a node that a snapshot has as gone is not there, and one that goes later is",
        (
            (
                "_Replay._remove_nodes",
                "record.lsn or record.node_name in self._core.placements.nodes",
                "record.lsn and record.node_name in self._core.placements.nodes",
            ),
        ),
    ),
    Same(
        "roadstead/binder/recovery.py",
        "of records that all have a token none is left out",
        (("_Replay._record_tokens", "if not all(records.tokens): ...", "if True: ..."),),
    ),
    Same(
        "roadstead/binder/recovery.py",
        "binds are kept that nobody asks for, until the oldest tokens are forgotten at the end",
        (
            ("_Replay._record_tokens", "self._bind_count += len(records)", "pass"),
            (
                "_Replay._record_tokens",
                "self._bind_count += len(records)",
                "self._bind_count -= len(records)",
            ),
        ),
    ),
    Same(
        "roadstead/binder/recovery.py",
        "binds of which nothing need be known any more are forgotten a group later",
        (
            (
                "_Replay._record_tokens",
                "self._bind_count - len(self._binds[0]) >= self._core.settings.max_tokens",
                "self._bind_count - len(self._binds[0]) > self._core.settings.max_tokens",
            ),
        ),
    ),
    Same(
        "roadstead/binder/recovery.py",
        "a record without a token has no owner and no epoch, and no version is read of its pod",
        (("_Replay._place", "if token: ...", "if True: ..."),),
    ),
    Same(
        "roadstead/binder/all_or_nothing.py",
        "a gang that required nobody is never short",
        (("_required_counts", "needed", "True"),),
    ),
    Same(
        "roadstead/binder/all_or_nothing.py",
        "when all groups are left out, no other group lacks pods",
        (("refused_groups", "len(left_out) < len(required)", "len(left_out) <= len(required)"),),
    ),
    Same(
        "roadstead/binder/tokens.py",
        "the same token is looked at again, which still waits",
        (("TokenMemory.forget_oldest", "break", "continue"),),
    ),
    Same(
        "roadstead/binder/validation.py",
        "names for types only",
        (("", "if TYPE_CHECKING: ...", "if True: ..."),),
    ),
    Same(
        "roadstead/binder/verification.py",
        "one class more is kept, which is found again where it is not",
        (("", "4096", "4097"),),
    ),
    Same(
        "roadstead/binder/verification.py",
        "what NODE facts say is found again for all rows",
        (("Verifier._passes_quick_check", "if cached.passes is None: ...", "if True: ..."),),
    ),
    Same(
        "roadstead/binder/verification.py",
        "how soon what NODE facts say is found for all rows at once, to the same answers",
        (
            ("", "3", "4"),
            ("", "8", "9"),
            ("Verifier._passes_quick_check", "1", "2"),
            (
                "Verifier._passes_quick_check",
                "if cached.uses < MIN_PODS_TO_CACHE: ...",
                "if False: ...",
            ),
            (
                "Verifier._passes_quick_check",
                "if cached.uses < MIN_PODS_TO_CACHE: ...",
                "if True: ...",
            ),
            ("Verifier._passes_quick_check", "cached.uses += 1", "cached.uses -= 1"),
            ("Verifier._passes_quick_check", "cached.uses += 1", "pass"),
            (
                "Verifier._passes_quick_check",
                "cached.uses < MIN_PODS_TO_CACHE",
                "cached.uses <= MIN_PODS_TO_CACHE",
            ),
            ("Verifier._results_for_all_rows", "cached.uses += pods", "cached.uses -= pods"),
            ("Verifier._results_for_all_rows", "cached.uses += pods", "pass"),
            ("_CachedResults", "0", "1"),
        ),
    ),
    Same(
        "roadstead/binder/verification.py",
        "where a batch is not verified at once its pods are one by one, with the same answers",
        (
            (
                "Verifier._stays_feasible",
                (
                    "if cached.outcome.node_names is not None or not cached.outcome.status.is_success"
                    ": ..."
                ),
                "if True: ...",
            ),
            ("Verifier._results_for_all_rows", "True", "False"),
            (
                "Verifier._results_for_all_rows",
                "if cached is None or not self._is_valid(cached, profile, pod_class, quick=True): ...",
                "if True: ...",
            ),
            (
                "Verifier._results_for_all_rows",
                (
                    "if cached.passes is None and cached.uses >= min_pods and "
                    "cached.outcome.status.is_success: ..."
                ),
                "if False: ...",
            ),
            ("Verifier._results_for_all_rows", "if pods < min_pods: ...", "if False: ..."),
            ("Verifier._results_for_all_rows", "if pods < min_pods: ...", "if True: ..."),
            (
                "Verifier._results_for_all_rows",
                "cached.passes = _static_mask(profile, pod_class, cached.outcome.state, self._table)",
                "pass",
            ),
            (
                "Verifier._results_for_all_rows",
                "cached.passes is None",
                "cached.passes is not None",
            ),
            (
                "Verifier._results_for_all_rows",
                "cached.uses >= min_pods",
                "cached.uses > min_pods",
            ),
            ("Verifier._results_for_all_rows", "pods < min_pods", "pods <= min_pods"),
            ("Verifier.verify_prefix", "1", "2"),
            ("Verifier._count_by_shape", "1", "2"),
            (
                "Verifier._count_by_shape",
                "PODS_PER_SHAPE * len(first_class)",
                "PODS_PER_SHAPE // len(first_class)",
            ),
            (
                "Verifier._count_by_shape",
                "MIN_PODS_TO_CACHE if count < PODS_PER_SHAPE * len(first_class) else 1",
                "1 if count < PODS_PER_SHAPE * len(first_class) else MIN_PODS_TO_CACHE",
            ),
            (
                "Verifier._count_by_shape",
                "if cached is None or not self._stays_feasible(cached, pod_class, first_class.values()): ...",
                "if True: ...",
            ),
            (
                "Verifier._count_by_shape",
                "count < PODS_PER_SHAPE * len(first_class)",
                "count <= PODS_PER_SHAPE * len(first_class)",
            ),
            ("_static_mask", "if codes is not None: ...", "if True: ..."),
        ),
    ),
    Same(
        "roadstead/binder/verification.py",
        "what is not kept of a class is found again",
        (
            (
                "Verifier._pre_filtered",
                "if before is not None and same_facts: ...",
                "if False: ...",
            ),
            (
                "Verifier._pre_filtered",
                "if cached is not None and same_inputs and outcome.is_same(cached.outcome): ...",
                "if False: ...",
            ),
            (
                "Verifier._pre_filtered",
                (
                    "if cached is not None and (not has_failed) and self._is_valid(cached, profile, "
                    "pod_class, quick=False): ..."
                ),
                "if False: ...",
            ),
            ("Verifier._pre_filtered", "if len(self._cached) > MAX_CACHED: ...", "if True: ..."),
        ),
    ),
    Same(
        "roadstead/binder/verification.py",
        "classes that changed earlier are looked at again, to the same outcome",
        (
            (
                "Verifier._pre_filtered",
                "cached.validity.changes = cached.quick_validity.changes = changes",
                "pass",
            ),
        ),
    ),
    Same(
        "roadstead/binder/verification.py",
        "which classes are kept, which are found anew where they are not",
        (("Verifier._pre_filtered", "self._cached.pop(key, None)", "pass"),),
    ),
    Same(
        "roadstead/binder/verification.py",
        "the quick yes is left out, and all filters say the same",
        (
            (
                "Verifier._verify",
                "if cached is not None and self._is_valid(cached, profile, pod_class, quick=True): ...",
                "if False: ...",
            ),
            (
                "Verifier._verify",
                "if passed and self._passes_quick_check(cached, profile, pod_class, row): ...",
                "if False: ...",
            ),
        ),
    ),
    Same(
        "roadstead/binder/verification.py",
        (
            "what all rows pass is found earlier, or anew; of a class that PreFilter refuses "
            "nothing is asked"
        ),
        (
            (
                "Verifier._results_for_all_rows",
                (
                    "if cached.passes is None and cached.uses >= min_pods and "
                    "cached.outcome.status.is_success: ..."
                ),
                "if True: ...",
            ),
        ),
    ),
)
