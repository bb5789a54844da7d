"""What-if: questions about a cluster, answered by scheduling on a copy of it.

A question starts from the state of a cluster at one time, recorded or simulated: `RunInputs`
(nodes, running pods, pending pods) and a `RunPlan` (settings and configuration). Its answer is one
of the results in `roadstead.report`. The copy is a `Sandbox`. A *run* schedules all pods of the
inputs on a new copy; a *trial* changes one copy, schedules, and undoes the change. A *bare* pod has
no controller.
"""
