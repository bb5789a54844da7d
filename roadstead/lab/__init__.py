"""The conflict lab: models of many schedulers on one shared state, sweeps, and recommendations.

The models are those of two papers, with their words: in Omega a *cell* is a cluster, a *machine* a
node, a *task* a pod and a *job* its tasks, committed in one transaction; in ParSync a *slot* is the
room for one task, and a *sync gap* the time in which a scheduler's whole view is refreshed once. A
*view* is a scheduler's copy of the state, which may be stale. *Regret* is how
far the score of the chosen node is below the best score. A *study* is a function that a sweep runs
for each combination of its parameters and each seed; a *point* is one combination with its results.
"""
