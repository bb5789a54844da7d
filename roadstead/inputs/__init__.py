"""The inputs of a run, read from manifests or a trace.

A *running* pod is on a node, a *pending* one waits for a node. Pods and claims of manifests that
the API server's admission would refuse are *not created*: they are in no input.
"""
