"""Actors around the synchronous cores, their messages, and the runtimes that run them.

    queue ── leased pods ──► scheduler ── assume ──► cache ── changes ──► schedulers, workers
                                 └────── bind ─────► binder ──► journal

The client and the supervisor run in the driver: the client sends nodes and pods, the supervisor
watches all actors and replaces lost ones. An actor is built from the `RunPlan`: the settings
(`config/settings.py`) and the configuration of a run. `control: together` puts queue, cache and
binder into one process.
"""
