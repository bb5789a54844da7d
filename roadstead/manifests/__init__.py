"""The user's manifests: files to validated objects, defaults filled in, workloads to pods.

A workload is an object whose controller creates pods. An object is *stored* if an API server has
admitted it already; other objects are admitted here, with the same changes and refusals. The *key*
of an object is the text `namespace/name`. *Notes* are messages for the user that are no errors.
"""

from roadstead.manifests.collection import Manifests as Manifests
from roadstead.manifests.collection import read_manifests as read_manifests
from roadstead.manifests.expansion import Expansion as Expansion
from roadstead.manifests.expansion import expand_workloads as expand_workloads
