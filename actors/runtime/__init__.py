"""Runtimes of actors: in this process, on Ray, or simulated; from an envelope to its handler.

A run either starts a local Ray for itself, on this machine, or joins a Ray cluster that exists. A
host is a process of Ray with one or several of the run's actors; a raylet is Ray's own process on
each node, and the head is the node with the servers of the cluster.

dispatch.py, process_calls.py, transcript.py   from an envelope to a handler; the last messages
reconnecting.py                                refs that follow replaced actors
inline.py                                      actors in this process
simulated.py, simulated_network.py, virtual_time.py   actors of a simulation
ray_runtime.py, ray_host.py, ray_refs.py       actors on Ray: the runtime, a host, its refs
ray_session.py, ray_target.py, ray_joining.py  starting or joining Ray, and leaving it
ray_node.py, ray_child.py, ray_folder.py       a local Ray: fewer processes, a private folder
ray_cluster.py, ray_placement.py               a joined cluster: its nodes, and the choice of them
ray_checks.py, node_probe.py, ray_heartbeats.py   checks of these nodes, before and during a run
ray_logs.py, log_location.py, ray_metrics.py   logs and metrics of a joined cluster
kernel_loader.py, sampling.py                  the kernel, and the profiler, of a process
"""
