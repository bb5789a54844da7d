"""Write requirements.lock and requirements-dev.lock anew from pyproject.toml (needs `uv`).

    python scripts/lock.py [--upgrade]

Both hold hashes for every file of a release and name no index, so that any mirror serves. They also
hold the build requirement: the checkout is installed without build isolation, from the lock alone.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tomllib
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
HEADER = "# Written by scripts/lock.py from pyproject.toml; do not edit.\n"
COMPILE = (
    *("uv", "pip", "compile", "--quiet", "--universal", "--python-version", "3.11"),
    *("--generate-hashes", "--no-annotate", "--no-header", "--no-emit-index-url"),
)


def compile_lock(requirements: str, options: Sequence[str]) -> str:
    """Return uv's resolution of `requirements` (one per line) as the text of a lock file."""
    result = subprocess.run(
        [*COMPILE, *options, "-"], input=requirements, capture_output=True, text=True, check=True
    )
    return HEADER + without_index(result.stdout)


def without_index(lock: str) -> str:
    """Return the lock without options such as `--index-url` and without comments."""
    lines = lock.splitlines(keepends=True)
    return "".join(line for line in lines if not line.startswith(("--", "#")))


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--upgrade", action="store_true", help="newest releases, not the locked")
    is_upgrade = parser.parse_args(arguments).upgrade
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    runtime = [*project["project"]["dependencies"], *project["build-system"]["requires"]]
    dev = [*runtime, *project["project"]["optional-dependencies"]["dev"]]
    lock, lock_dev = ROOT / "requirements.lock", ROOT / "requirements-dev.lock"
    for path, wanted, extra in ((lock, runtime, []), (lock_dev, dev, ["-c", str(lock)])):
        known = [] if is_upgrade or not path.exists() else ["-c", str(path)]
        try:
            text = compile_lock("\n".join(wanted), [*known, *extra])
        except FileNotFoundError:
            print("uv is not on the PATH: pip install uv", file=sys.stderr)
            return 1
        path.write_text(text)
        print(
            f"{path.name}: {sum('==' in line for line in path.read_text().splitlines())} packages"
        )
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
