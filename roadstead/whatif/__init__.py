"""What-if: questions about a cluster, answered by scheduling on a copy of it.

A question starts from a moment: `RunInputs` (nodes, running pods, pending pods) and a `RunPlan`,
wherever they are from. Its answer is one of the results in `roadstead.report`.
"""
