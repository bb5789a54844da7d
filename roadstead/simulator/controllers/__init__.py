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

A controller compares what it wants with what is there, not with what happened before (as upstream's
controllers do), and so needs no transition table. All its reactions to the events of one time are
one comparison: then no command is under way, and what it sees is complete.
"""

from roadstead.simulator.controllers.component import Controllers as Controllers
