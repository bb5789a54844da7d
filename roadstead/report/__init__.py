"""Results of commands: tables on a terminal, files (JSON, Parquet), and HTML pages with plots.

Of a run: `result`, `summary`, `terminal`, `output`. Of `explain` and `why`: `explain_*`. Of the
what-if commands (`fit`, `grow`, `drain`): `fit_result`, `grow_result`, `drain_result`, `what_if_*`.
Of `stress`: `stress_*`, with the words of `roadstead.lab`. Of simulated scenarios: `simulated_*`,
`paired_*` (two configurations compared), `scenario_sweep_*`. A figure is a number that is reported,
such as a metric. A workload is a controller with its pods: `Deployment shop/web`.
"""
