"""A user's plugins that behave like in-tree ones, under names of their own.

RunPlan(settings, config_with(MyGangs), plugins=renamed(MyGangs))
"""

import json

from roadstead.config.plugin_args import CoschedulingArgs
from roadstead.plugins.coscheduling import Coscheduling
from roadstead.plugins.volume_binding import VolumeBinding


class MyGangs(Coscheduling):
    name = "MyGangs"

    def __init__(self, handle):
        super().__init__(CoschedulingArgs(permit_wait_s=1), handle)


class MyVolumes(VolumeBinding):
    name = "MyVolumes"


def renamed(*kinds):
    """Return the names of these plugins for a plan's `plugins`."""
    return tuple(f"{__name__}:{kind.__name__}" for kind in kinds)


def config_with(*kinds, without=()):
    """Return a configuration that enables these plugins, and disables some default ones."""
    points = {
        "enabled": [{"name": kind.name} for kind in kinds],
        "disabled": [{"name": name} for name in without],
    }
    return json.dumps(
        {
            "apiVersion": "kubescheduler.config.k8s.io/v1",
            "kind": "KubeSchedulerConfiguration",
            "profiles": [{"plugins": {"multiPoint": points}}],
        }
    )
