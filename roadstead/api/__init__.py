"""The Python API, and the steps of a run that the API and the command line share.

Of a run of the scheduler: nodes and pods are read (`inputs.loaded.Loaded`), settings and
configuration make a `RunPlan`, and a `Launcher` executes it. Pods are created by admission, which
may refuse some; names of pods are looked up among the created ones.

Of simulated runs: a scenario is read (`ScenarioFile`), compiled, and played, that is simulated,
once for each variant, a configuration with a seed. A run has a folder with its tables (each in
parts, files of Parquet) and a summary, its figures. A folder of several runs has a record of them
(`run.json`), from which each can be played again. A moment is the fleet at a time of such a run.

A sweep plays a scenario with several combinations of values. An axis is a key of the scenario's
document, such as fleet.0.generate.nodes, with the values that it gets; a comparison is a sweep with
two combinations, A and B, whose runs with equal seeds are pairs.
"""
