"""The conflict lab: models of many schedulers on one shared state, sweeps, and recommendations."""
