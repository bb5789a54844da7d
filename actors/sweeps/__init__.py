"""Sweeps on Ray: the driver of their tasks, and the nodes that run them.

A sweep is a list of tasks, each one call of a function, such as a run of the lab with one set of
parameters (`roadstead.sweeps`). A task may be started again if its process or node is lost.
"""
