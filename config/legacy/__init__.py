"""Older vocabulary: Policy v1 and KubeSchedulerConfiguration v1alpha1, v1beta2, v1beta3.

An older document becomes a v1 document, which takes the same way as one written by hand, and a
note for each thing that is called or done otherwise today.
"""
