"""The kernel: compiled decisions of runs of pods, bit for bit those of the NumPy reference.

Only `jit` imports numba, for the compiled modules; `start.load` imports these at run time.
"""
