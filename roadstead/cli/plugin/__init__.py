"""`roadstead plugin`: writing, testing and listing the user's plugins.

A hook is a method of a plugin that the scheduler calls; a declaration is a class attribute with
which a plugin states what its answers depend on, as `reads` (docs/plugins.md). The checks call a
plugin on sample fleets, and compare its answers and the decisions of several decision paths: by the
plugins alone (`plain`), in batches, or with workers.
"""
