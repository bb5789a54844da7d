"""The kernel: compiled decisions of runs of pods, equal to those of the reference to the last bit.

`compiled` is the only module that imports numba; `start.load` imports it, where a scheduler runs.
"""
