"""A fleet that is played in virtual time.

Words used in all modules: a *scenario* is nodes, pods that arrive, controllers and node events up
to a *horizon*, the time at which the run ends. To *play* it is to handle its events in the order of
their times (`engine.py`). A *component* is a part of the cluster besides the scheduler, such as a
controller; it returns *commands*, which the engine carries out. A *recorder* receives what happens
and writes tables. A *sample* is the state of the fleet at one time. The *key* of a pod is
namespace/name. Pods are decided as in a live run, by the same scheduler, queue and cache in one
thread (`virtual_cluster.py`).
"""
