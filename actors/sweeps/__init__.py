"""Sweeps on Ray: the driver of their tasks, and the nodes that run them."""
