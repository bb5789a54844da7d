"""Mutants of the cycle that change no result, see this package's docstring."""

from tests.mutation.equivalents.same import Same

SAME: tuple[Same, ...] = (
    Same(
        "roadstead/cycle/single_pod_cycle.py",
        "where no row is feasible nothing is scored, whatever is summed up for it",
        (
            (
                "SinglePodCycle.pre_score",
                "self._evaluation.pre_filter.status.is_success and self._evaluation.feasible.any()",
                "self._evaluation.pre_filter.status.is_success or self._evaluation.feasible.any()",
            ),
        ),
    ),
    Same(
        "roadstead/cycle/batch.py",
        "no kernel is kept for the next batch",
        (("Batch._kernel_of_batch", "self._kernels is not None", "self._kernels is None"),),
    ),
    Same(
        "roadstead/cycle/batch.py",
        "fewer pods are placed at once, and the others after them, to the same result",
        (
            (
                "Batch.decide_by_kernel",
                "self._name_best and pods[0].signature not in not_covered",
                "self._name_best or pods[0].signature not in not_covered",
            ),
        ),
    ),
    Same(
        "roadstead/cycle/class_cache.py",
        "how many classes are kept, which are found anew where they are not",
        (
            ("max_cached_classes", "1", "2"),
            ("max_cached_classes", "MIN_CLASSES // memory_sharers", "MIN_CLASSES * memory_sharers"),
        ),
    ),
    Same(
        "roadstead/cycle/class_cache.py",
        "how many classes are decided together or kept, to the same result",
        (
            ("", "12000000", "12000001"),
            ("max_batch_classes", "1", "2"),
        ),
    ),
    Same(
        "roadstead/cycle/class_cache.py",
        "it is asked about some pods at least, and counts from the first of them",
        (("prefix_length", "0", "1"),),
    ),
    Same(
        "roadstead/cycle/class_cache.py",
        "of all pods there are, one more is as many",
        (("prefix_length", "1", "2"),),
    ),
    Same(
        "roadstead/cycle/class_scores.py",
        "all rows are summed up again, to the same totals",
        (
            ("ClassScores._must_normalize_anew", "False", "True"),
            (
                "ClassScores._sum",
                "if rescored is None or self._must_normalize_anew(rescored): ...",
                "if True: ...",
            ),
        ),
    ),
    Same(
        "roadstead/cycle/class_scores.py",
        "extremes are found again, and are the same",
        (
            (
                "ClassScores._must_normalize_anew",
                "if not (has_dynamic or feasibility_changed.any()): ...",
                "if False: ...",
            ),
        ),
    ),
    Same(
        "roadstead/cycle/class_scores.py",
        "of no rows nothing is summed up",
        (
            ("ClassScores._sum", "if len(rescored): ...", "if True: ..."),
            ("ClassScores._sum_rows", "if not has_sum.all(): ...", "if True: ..."),
        ),
    ),
    Same(
        "roadstead/cycle/explain.py",
        "a plugin that is skipped has neither, any other has both",
        (
            (
                "_score_entry",
                "scores.raw is None or scores.normalized is None",
                "scores.raw is None and scores.normalized is None",
            ),
        ),
    ),
    Same(
        "roadstead/cycle/scopes.py",
        "when the state was read is asked only once it was",
        (("Scope", "0.0", "1.0"),),
    ),
    Same(
        "roadstead/cycle/merged_lists.py",
        "no list is of use, and the scheduler looks at all rows itself, to the same result",
        (
            (
                "best_rows",
                "lists.append(_WorkerLists(answer, worker_rows, len(signatures), max_rows))",
                "pass",
            ),
        ),
    ),
    Same(
        "roadstead/cycle/node_search.py",
        "it is made when it is first taken, since no table has the version before that",
        (("OrderedNodesCache.__init__", "self._order = OrderedNodes()", "pass"),),
    ),
    Same(
        "roadstead/cycle/node_search.py",
        "the ordered nodes are made anew of the same nodes: a change of one changes the version",
        (
            (
                "OrderedNodesCache.snapshot",
                "if table.node_version != self._version: ...",
                "if True: ...",
            ),
            ("OrderedNodesCache.snapshot", "self._version = table.node_version", "pass"),
        ),
    ),
    Same(
        "roadstead/cycle/node_search.py",
        "the places of all nodes that PreFilter left over say the same as None",
        (
            (
                "_Search._evaluated",
                "if len(self._visited) == len(self.considered): ...",
                "if False: ...",
            ),
        ),
    ),
    Same(
        "roadstead/cycle/placed_classes.py",
        "of no new classes none is gone through",
        (
            (
                "PlacedClasses._effects_for",
                "effects.classes_read < len(self._classes)",
                "effects.classes_read <= len(self._classes)",
            ),
        ),
    ),
    Same(
        "roadstead/cycle/placed_classes.py",
        "classes that are known are gone through again",
        (("PlacedClasses._effects_for", "effects.classes_read = len(self._classes)", "pass"),),
    ),
    Same(
        "roadstead/cycle/scheduling_cycle.py",
        "one decision more between two pauses, to the same result",
        (("", "128", "129"),),
    ),
    Same(
        "roadstead/cycle/scheduling_cycle.py",
        "how much each scope may keep in memory",
        (
            ("SchedulingCycle._new_builder", "1", "2"),
            ("SchedulingCycle._new_builder", "2", "3"),
            (
                "SchedulingCycle._new_builder",
                "2 if settings.concurrency == 'partitioned' else 1",
                "1 if settings.concurrency == 'partitioned' else 2",
            ),
            (
                "SchedulingCycle._new_builder",
                "settings.concurrency == 'partitioned'",
                "settings.concurrency != 'partitioned'",
            ),
        ),
    ),
    Same(
        "roadstead/cycle/scheduling_cycle.py",
        "without a partition there is one scope, and all pods are of it",
        (("SchedulingCycle.in_scope", "if self._partition is None: ...", "if False: ..."),),
    ),
    Same(
        "roadstead/cycle/sampled_batch.py",
        "a default; whoever begins such a batch says whether the best nodes are to be named",
        (("SampledBatch", "False", "True"),),
    ),
    Same(
        "roadstead/cycle/class_results.py",
        "one class more is kept of what workers found",
        (("", "512", "513"),),
    ),
    Same(
        "roadstead/cycle/batch_builder.py",
        "so few classes are within both bounds",
        (
            (
                "BatchBuilder._limit_classes",
                "if len({pod.signature for pod in pods}) <= most: ...",
                "if False: ...",
            ),
            (
                "BatchBuilder._limit_classes",
                "len({pod.signature for pod in pods}) <= most",
                "len({pod.signature for pod in pods}) < most",
            ),
        ),
    ),
    Same(
        "roadstead/cycle/class_results.py",
        "what classes of a kind share is found of each",
        (("ClassResults._evaluated", "self._shared.put(shape, found, len(self._table))", "pass"),),
    ),
    Same(
        "roadstead/cycle/class_results.py",
        "how many classes are kept, which are found anew where they are not",
        (
            (
                "ClassResults.of",
                "cached.class_input.shared_evaluation is not None",
                "cached.class_input.shared_evaluation is None",
            ),
        ),
    ),
    Same(
        "roadstead/cycle/class_results.py",
        "what is not kept of a class is found again",
        (
            (
                "ClassResults.of",
                "self._own.put(pod.signature, cached, len(self._table), shares=shares)",
                "pass",
            ),
        ),
    ),
    Same(
        "roadstead/cycle/batch_builder.py",
        "what is not kept of a class that extenders handle is found again",
        (
            (
                "BatchBuilder._search_or_batch",
                "self._searched_classes.put(alone.signature, scores, len(self.table))",
                "pass",
            ),
        ),
    ),
    Same(
        "roadstead/cycle/batch_builder.py",
        "where no nodes are searched, all pods go together either way",
        (("BatchBuilder.samples", "False", "True"),),
    ),
    Same(
        "roadstead/cycle/batch_builder.py",
        "each sampled pod is a batch of its own, to the same result",
        (
            (
                "BatchBuilder.samples",
                "if node_search is None or not node_search.applies_to(pod.pod_class.facts): ...",
                "if True: ...",
            ),
        ),
    ),
    Same(
        "roadstead/cycle/batch_builder.py",
        "how many pods the next batch begins, to the same result",
        (
            ("BatchBuilder.record_length", "1", "2"),
            ("BatchBuilder.record_length", "decided == begun", "decided != begun"),
        ),
    ),
    Same(
        "roadstead/cycle/tentative.py",
        "before a node goes its pods leave it, also those that are set aside (`Delta`)",
        (("Tentative._restore", "if self._table.has_node(node_name): ...", "if True: ..."),),
    ),
    Same(
        "roadstead/cycle/tentative.py",
        "a count of zero stays, and counts as none",
        (
            ("Tentative._uncount", "del self._nomination_counts[nomination]", "pass"),
            (
                "Tentative._uncount",
                "if not self._nomination_counts[nomination]: ...",
                "if False: ...",
            ),
        ),
    ),
    Same(
        "roadstead/cycle/tentative.py",
        "a pod that stands there is taken back and comes again",
        (
            (
                "Tentative.confirm",
                "if known is not None and known == (name, pod_class) and is_on(name, uid): ...",
                "if False: ...",
            ),
            ("Tentative.confirm", "known is not None", "known is None"),
        ),
    ),
    Same(
        "roadstead/cycle/tentative.py",
        "a pod that was set aside left its node before it comes to another one",
        (("Tentative.confirm", "self._removed.pop(uid, None)", "pass"),),
    ),
    Same(
        "roadstead/cycle/tentative.py",
        "where nobody is nominated nothing is given up, which costs time alone",
        (
            (
                "Tentative.record_decisions",
                "if self._nominated or self._table.nominations: ...",
                "if True: ...",
            ),
        ),
    ),
    Same(
        "roadstead/cycle/tentative.py",
        "a count of no nomination is never asked about",
        (("Tentative.withdraw", "if nomination is not None: ...", "if True: ..."),),
    ),
    Same(
        "roadstead/cycle/continuing_batch.py",
        "the batch ends there, and the pod is the first of the next one, to the same result",
        (
            (
                "ContinuingBatch._decide_changed",
                "if facts.volumes or (facts.device_claims and (not self._has_allocated_all)): ...",
                "if True: ...",
            ),
        ),
    ),
    Same(
        "roadstead/cycle/class_results.py",
        "what is not taken over from another class of the kind is found anew",
        (
            (
                "ClassResults._shared_results",
                "not shared.holds(inputs, self._table, profile)",
                "shared.holds(inputs, self._table, profile)",
            ),
        ),
    ),
    Same(
        "roadstead/cycle/batch.py",
        "where none of the classes is left out, all pods are placed at once",
        (("Batch.decide_by_kernel", "if not_covered: ...", "if True: ..."),),
    ),
    Same(
        "roadstead/cycle/class_cache.py",
        "whoever takes what was kept of a class asks whether it still holds",
        (
            ("ClassCache.put", "self._own.pop(key, None)", "pass"),
            ("ClassCache.put", "self._shared.pop(key, None)", "pass"),
        ),
    ),
    Same(
        "roadstead/cycle/class_scores.py",
        "scores are found again, the same ones",
        (("ClassScores._sum", "if not status.is_success: ...", "if True: ..."),),
    ),
    Same(
        "roadstead/cycle/explain.py",
        "PreScore is asked where a row is feasible, and says something where it fails",
        (
            (
                "explain",
                "evaluation.pre_score.code is Code.ERROR and len(feasible)",
                "evaluation.pre_score.code is Code.ERROR or len(feasible)",
            ),
        ),
    ),
    Same(
        "roadstead/cycle/ranker.py",
        "the totals of fewer or of more classes are in memory at a time",
        (("Ranker.rank", "max(1, len(self._table))", "min(1, len(self._table))"),),
    ),
    Same(
        "roadstead/cycle/worker_rows.py",
        "rows are put in order before they are first asked for",
        (("RowsByArrival.__init__", "0", "1"),),
    ),
    Same(
        "roadstead/cycle/explain.py",
        "where scoring fails, nobody looks at totals",
        (("explain", "0", "1"),),
    ),
    Same(
        "roadstead/cycle/explain.py",
        "why nodes are refused is only said where none is feasible",
        (("_diagnosis", "if status is not None: ...", "if True: ..."),),
    ),
    Same(
        "roadstead/cycle/jobs.py",
        "where latency takes no time, the sum of its times is 0",
        (("SimulatedLatency.wait_s", "if not self.is_on: ...", "if False: ..."),),
    ),
    Same(
        "roadstead/cycle/scorer.py",
        "the same numbers in more bytes",
        (("packed", "most <= np.iinfo(d).max", "most < np.iinfo(d).max"),),
    ),
)
