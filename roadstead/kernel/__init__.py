"""The kernel: compiled decisions of sequences of pods, bit for bit those of the plugins.

Only `jit` imports numba, for the compiled modules; `start.load` imports these at run time.
"""
