"""Older formats: Policy v1 and KubeSchedulerConfiguration v1alpha1, v1beta2, v1beta3.

An older document is translated to a v1 document, which is then loaded like any other, with a note
for each part whose name or behaviour has changed.
"""
