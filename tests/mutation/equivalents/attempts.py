"""Mutants of the attempts that change no result, see this package's docstring."""

from tests.mutation.equivalents.same import Same

SAME: tuple[Same, ...] = (
    Same(
        "roadstead/attempts/core.py",
        "one pod or attempt more is remembered",
        (("AttemptsCore", "65536", "65537"),),
    ),
    Same(
        "roadstead/attempts/core.py",
        "the plugins are asked, of whom none has a say, to the same end",
        (
            (
                "AttemptsCore.assumed",
                (
                    "if status is SUCCESS and record.binds_without_plugins and (record.state is "
                    "AttemptState.ASSUMING): ..."
                ),
                "if False: ...",
            ),
        ),
    ),
    Same(
        "roadstead/attempts/core.py",
        "the plugins are told, of which there are none, to the same end",
        (
            (
                "AttemptsCore.bind_answered",
                "if answer.outcome is BindOutcome.BOUND and record.binds_without_plugins: ...",
                "if False: ...",
            ),
        ),
    ),
    Same(
        "roadstead/attempts/core.py",
        "only pods of a gang wait for the plugin of gangs",
        (("AttemptsCore.waiting_gangs", "key is not None", "True"),),
    ),
    Same(
        "roadstead/attempts/attempt_store.py",
        "what only validate() asserts",
        (
            (
                "AttemptStore._validate_ended",
                "if record.state is AttemptState.BOUND: ...",
                "if False: ...",
            ),
        ),
    ),
    Same(
        "roadstead/attempts/pods.py",
        "a default; every record begins with the lease that its pod came with",
        (("AttemptRecord", "0", "1"),),
    ),
)
