"""The check that a Ray node answers: what is installed there, and which folders it sees.

Ray sends this module's functions by value, because a node without Roadstead has to answer, too: so
the module imports nothing of Roadstead's at its top, and returns plain values.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import platform
import sys
import time

FIELDS = (
    *("host", "python", "error", "version", "digest", "folder", "kernel", "has_nonce", "clock"),
    "load",
)


def probe(nonce_path: str) -> dict[str, str]:
    """Return what this process finds on its node, as texts under `FIELDS`.

    nonce_path: file that shows that this node sees the folder of the journal; "" without one.

    error: of the import of Roadstead's actors; "" if all is there. version, folder, digest: of the
    installed package; the digest is that of its files. clock: Unix time. load: processes that ran
    or waited for a CPU, on average of a minute.
    """
    found = dict.fromkeys(FIELDS, "")
    found |= {"host": platform.node(), "python": ".".join(map(str, sys.version_info[:2]))}
    found["clock"] = repr(time.time())
    with contextlib.suppress(OSError):
        found["load"] = repr(os.getloadavg()[0])
    if nonce_path and os.path.exists(nonce_path):
        found["has_nonce"] = "yes"
    try:
        importlib.import_module("roadstead.actors.supervisor.supervisor")
        package = importlib.import_module("roadstead")
        kernel = importlib.import_module("roadstead.kernel.compiled_code")
        files = importlib.import_module("roadstead.package_files")
        found |= {"version": package.__version__, "folder": str(files.PACKAGE_FOLDER)}
        found["digest"] = files.package_digest()
    except Exception as failure:
        found["error"] = f"{type(failure).__name__}: {failure}"
        return found
    try:
        found["kernel"] = "compiled" if kernel.is_compiled() else "not compiled yet"
    except Exception as failure:
        found["kernel"] = f"cannot be loaded: {failure}"
    return found
