"""The kernel: compiled decisions of runs of pods, equal to those of the reference to the last bit.

Only `jit` imports numba, for the compiled modules; `start.load` has it done where a scheduler runs.
"""
