"""Lowerings: the form in which the kernel decides by a plugin, one module for each covered plugin.

A plugin that reads rows lowers to arrays; its compiled code is in `compiled_<plugin>`. A plugin
that counts across nodes lowers to counters (`counter_arrays`). `lowerings` and
`compiled_lowerings` list the plugins; the rest of the kernel imports those two and names no plugin.
Modules named `compiled_…` import numba.
"""
