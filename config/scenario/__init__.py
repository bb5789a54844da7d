"""Scenarios of the fleet lab: schema, reader, reference page and examples.

A scenario is a YAML document: a fleet, a workload (pods that arrive over time) and events of nodes.
"""
