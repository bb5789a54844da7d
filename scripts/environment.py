"""Set up the checkout's `.venv`: locked packages and, on top of them, Roadstead itself, editable.

    python scripts/environment.py runtime|dev

Needs only the standard library of Python 3.11 to 3.13. A stamp in the environment records what was
installed where (lock, project file, path), so that a second run does nothing and a broken one
starts over.
"""

from __future__ import annotations

import contextlib
import hashlib
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LOCKS = {"runtime": "requirements.lock", "dev": "requirements-dev.lock"}
PYTHON_MIN = (3, 11)
PYTHON_END = (3, 14)

NEVER_IMPORTED = (
    r"/site-packages/(.*/tests|ray/(air|data|llm|rllib|serve|train|tune)"
    r"|numba/cuda|numpy/(distutils|f2py)|pygments/lexers)/"
)
"""Folders of installed packages that Roadstead does not import."""

Run = Callable[[Sequence[str]], None]


class SetupError(Exception):
    """The environment could not be made; the text names the step that failed."""


def run(command: Sequence[str]) -> None:
    """Run a command; if it fails, raise SetupError with its output."""
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    if result.returncode:
        output = (result.stdout + result.stderr).strip()
        raise SetupError(f"{' '.join(command)}\nended with {result.returncode}:\n{output}")


def python_of(venv: Path) -> Path:
    return venv / "bin" / "python"


def is_usable(venv: Path) -> bool:
    """Whether the environment's Python starts and has a version that Roadstead supports."""
    check = f"import pip, sys; sys.exit(not {PYTHON_MIN} <= sys.version_info[:2] < {PYTHON_END})"
    try:
        result = subprocess.run([python_of(venv), "-c", check], capture_output=True, check=False)
    except OSError:
        return False
    return result.returncode == 0


def digest(venv: Path, *sources: Path) -> str:
    """Return a digest of everything that an installed environment depends on, also its path."""
    hashed = hashlib.sha256(str(venv).encode())
    for source in sources:
        hashed.update(source.read_bytes())
        hashed.update(b"\0")
    return hashed.hexdigest()


def install(venv: Path, lock: Path, run: Run = run) -> None:
    """Create the environment if it is missing or broken, and install the lock into it."""
    if not is_usable(venv):
        run([sys.executable, "-m", "venv", "--clear", str(venv)])
    pip = [str(python_of(venv)), "-m", "pip", "--disable-pip-version-check", "--no-input"]
    # --no-deps, because the lock is complete. A resolver would consider newer releases than the
    # locked ones, and some versions of pip treat those of a package with extras as requirements
    # without a hash.
    quiet = ["install", "--quiet", "--no-compile", "--no-deps", "--require-hashes"]
    run([*pip, *quiet, "-r", str(lock)])
    compile_packages(venv, run)


def compile_packages(venv: Path, run: Run = run) -> None:
    """Compile the modules that may be imported; all bytecode, as from pip, takes 50 MB more."""
    compileall = [str(python_of(venv)), "-m", "compileall", "-q", "-j", "0"]
    # A module that does not compile fails when it is imported, as with pip.
    with contextlib.suppress(SetupError):
        run([*compileall, "-x", NEVER_IMPORTED, str(venv / "lib")])


def install_project(venv: Path, project: Path, run: Run = run) -> None:
    """Install the checkout editable; dependencies and build tools are those of the lock."""
    pip = [str(python_of(venv)), "-m", "pip", "--disable-pip-version-check", "--no-input"]
    quiet = ["install", "--quiet", "--no-deps", "--no-build-isolation"]
    run([*pip, *quiet, "--editable", str(project)])


def setup(root: Path, kind: str, run: Run = run) -> bool:
    """Bring `root/.venv` up to date for `kind`; return whether anything had to be done."""
    venv, lock = root / ".venv", root / LOCKS[kind]
    wanted = digest(venv, lock, root / "pyproject.toml")
    stamp = venv / f".roadstead-{kind}"
    if is_usable(venv) and stamp.is_file() and stamp.read_text() == wanted:
        return False
    stamp.unlink(missing_ok=True)
    install(venv, lock, run)
    install_project(venv, root, run)
    stamp.write_text(wanted)
    return True


def main(arguments: Sequence[str]) -> int:
    if len(arguments) != 1 or arguments[0] not in LOCKS:
        print("usage: environment.py runtime|dev", file=sys.stderr)
        return 2
    started = time.monotonic()
    if not is_usable(ROOT / ".venv"):
        print("Setting up .venv (once; a minute or two) ...", flush=True)
    try:
        changed = setup(ROOT, arguments[0])
    except SetupError as error:
        print(f"Setting up .venv failed.\n{error}", file=sys.stderr)
        return 1
    if changed:
        print(f"Set up .venv in {time.monotonic() - started:.0f} s.", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
