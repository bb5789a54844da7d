"""One module per in-tree plugin, and the modules that share work among them.

A plugin answers for all rows of a node table in one call; `roadstead.framework.plugin` defines its
methods. All modules here use these terms:

    table            nodes in columns, one row per node. `view(rows)` shows some rows of the same
                     columns; a copy of rows (`copy_rows`) has columns of its own, in which pods may
                     be added and removed, for dry runs of preemption and for nominated pods
    code             small integer in place of a value: a label value (-1: the node lacks the
                     label), a set of taints, a resource name
    versions         `version` of a table grows with each change, `node_version` only with changes
                     of nodes; `catch_up` applies the changes since the last call to a cache
    pod class        `PodClass`: pods with equal facts. `request_of` has its requests by resource,
                     `coded_requests` by the resource's code
    Handle           objects of the process that plugins share: pod classes, claims and volumes,
                     waiting pods
    feasible()       in PreScore: which rows passed Filter, bool[row]

A plugin declares:

    reads            on what its answer for a row depends: the node, its pods, or other nodes
    shares_by_shape  its answers for all pods of one shape are equal
    sign             the pod's facts that it reads, as a cache key
    state_version    the version of the claims and volumes that it reads for a pod; None: it reads
                     none of them
    effect           the pods for which its answers on other nodes change when a pod is placed
    normalizes       raw scores are normalized, by the extremes of the feasible nodes' raw scores
    unprepared       upstream's error for Filter (or Score) if PreFilter (PreScore) is disabled
    only_succeeds    a method only returns Success and need not be called
    may_matter       for an event about a pod on a node: whether that pod may matter to a rejected
                     one, whose queueing hint is called only then

    with_pods_moved  upstream's AddPod and RemovePod: PreFilter's data for one node, as if pods were
                     moved there (class → number) or away (a number below 0)
    count_passing    how many of a batch's pods pass Filter, each on its row and after those before
                     it. A lower number is allowed: Filter then decides on the next pod
"""
