"""Files of users' plugins, and the results of `roadstead plugin test` on them."""

import json
import textwrap

HEAD = """
    from roadstead.framework.per_node import NodePlugin
    from roadstead.framework.plugin import (
        Effect, FilterPlugin, FilterResult, PermitPlugin, QueueSortPlugin, Reads, ScorePlugin,
    )
    from roadstead.protocol.status import SUCCESS, unschedulable
"""


def plugin_file(folder, name, text):
    (folder / f"{name}.py").write_text(textwrap.dedent(HEAD) + textwrap.dedent(text))


def checks(run, path, *more):
    """Return (exit code, check → (outcome, text))."""
    fleet = () if "--cluster" in more else ("--seeds", 1, "--nodes", 12)
    done = run("plugin", "test", path, *fleet, "--format", "json", *more)
    found = json.loads(done.stdout)["checks"]
    return done.exit_code, {each["name"]: (each["outcome"], each["text"]) for each in found}
