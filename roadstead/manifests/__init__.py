"""The user's manifests: files to validated objects, defaults filled in, workloads to pods."""

from roadstead.manifests.collection import Manifests as Manifests
from roadstead.manifests.collection import read_manifests as read_manifests
from roadstead.manifests.expansion import Expansion as Expansion
from roadstead.manifests.expansion import expand_workloads as expand_workloads
