"""Lowerings: translations of plugins for compiled code, one module for each covered plugin.

A plugin whose result for a row depends on that row alone is translated to arrays; its compiled code
is in `compiled_<plugin>`. A plugin that counts pods across nodes is translated to counters
(`counter_arrays`). `lowerings` and `compiled_lowerings` list the plugins; the rest of the kernel
imports those two and names no plugin.
Modules named `compiled_…` import numba.
"""
