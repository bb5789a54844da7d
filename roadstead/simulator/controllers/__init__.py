"""Controllers: what kube-controller-manager does for the workloads of a scenario.

    component.py       Controllers, the component: events of pods and nodes in, commands out
    core.py            what all controllers have: their plan, their pods, when they act
    replica_set.py     ReplicaSet: so many pods of one template
    deletion_order.py  which pods of a ReplicaSet are deleted first
    deployment.py      Deployment: a ReplicaSet for each template, and the rollout between them
    rolling.py         the arithmetic of rollouts
    stateful_set.py    StatefulSet: numbered pods, one after another
    daemon_set.py      DaemonSet: a pod on each node that may run it
    job.py             Job: pods until so many have succeeded

A controller compares the pods that it wants with the pods that exist (as upstream's controllers
do), so it has no state machine. It reacts to all events of one time with one comparison, made when
all commands of that time are carried out: `ControllerCore.sync`.
"""

from roadstead.simulator.controllers.component import Controllers as Controllers
