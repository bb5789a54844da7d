"""Every check of the project, then all tests; with arguments, only pytest with these.

    scripts/test                          every check and all tests
    scripts/test --quick                  style, types, layers and the fast tests: a minute
    scripts/test tests/fleet -x           pytest alone, with these arguments
    scripts/test --coverage               lines of the core packages that their tests execute

Order of the checks: style, types, layers and the compilation of the kernel and of the tests run in
parallel with the check of the wheel. That check builds the wheel, compares it with the sources,
installs it with the locked packages in an environment without the checkout, and runs the small
demo. The tests run last, so that their closing line ends the output. With --quick, the fast tests
(those that need no deadline) run in parallel with style, types and layers.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
import zipfile
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from environment import SetupError, digest, install, is_usable, python_of, run

ROOT = Path(__file__).resolve().parent.parent
BIN = ROOT / ".venv" / "bin"
WHEEL_DIR = ROOT / "build" / "wheel"
WHEEL_VENV = ROOT / "build" / "wheel-venv"
COVERAGE_FILE = ROOT / "build" / "coverage.json"
PYTEST_ALL = ("-n", "3", "--dist", "worksteal")
"""Three processes for two cores: two were busy for half of the time, since tests wait for Ray, and
four let calls to Ray pass their deadlines on a slow machine. Two processes begin with the tests of
Ray (tests/conftest.py)."""

PYTEST_QUICK = ("-n", "2", "--dist", "worksteal", "-m", "not ray")
"""Without tests that wait, two processes keep two cores busy; a third would collect once more."""

BEHIND = ("nice", "-n", "5")
"""Runs a tool with lower priority: the check of the wheel takes longest, and calls to Ray in its
demo have deadlines, which pass on a machine that computes."""

COMPILE = "from roadstead.kernel.compiled_code import compile_in_process; compile_in_process()"

QUICK = "--quick"
QUICK_FOLDERS = (
    *("protocol", "config", "facts", "manifests", "nodes", "storage", "queue", "cache", "attempts"),
    *("binder", "journal", "plugins", "preemption", "extenders", "fleet", "scheduler"),
)
"""Folders of tests that start neither Ray nor the compiler nor a run."""
COVERAGE = "--coverage"
COVERED_FOLDERS = (
    *("attempts", "binder", "cache", "extenders", "facts", "invariants", "journal", "nodes"),
    *("preemption", "protocol", "queue", "storage"),
)
"""Folders of tests that cover the package of their name without runs, compiled code or Ray."""
SHIPPED = (".py", ".yaml", ".typed")


def tool(name: str, *arguments: str) -> Callable[[], None]:
    """Return a check that runs one of the environment's tools from the checkout."""
    return lambda: run([*BEHIND, str(BIN / name), *arguments])


def build_wheel() -> Path:
    """Build the wheel from the sources alone; remove leftovers of an earlier build first."""
    for left in (ROOT / "build" / "lib", WHEEL_DIR):
        shutil.rmtree(left, ignore_errors=True)
    build = [str(BIN / "python"), "-m", "build", "--wheel", "--no-isolation", "--outdir"]
    run([*build, str(WHEEL_DIR), str(ROOT)])
    (wheel,) = WHEEL_DIR.glob("*.whl")
    return wheel


def shipped_files(root: Path) -> set[str]:
    """Return the files that a wheel must contain, links followed, as paths inside the wheel."""
    found: set[str] = set()
    for folder, folders, names in os.walk(root / "roadstead", followlinks=True):
        folders[:] = [name for name in folders if name != "__pycache__"]
        inside = Path(folder).relative_to(root)
        found |= {str(inside / name) for name in names if name.endswith(SHIPPED)}
    return found


def compare_wheel(wheel: Path, root: Path) -> None:
    """Compare the wheel's package with the sources, file by file; SetupError if they differ."""
    with zipfile.ZipFile(wheel) as archive:
        packed = {name for name in archive.namelist() if name.startswith("roadstead/")}
    wanted = shipped_files(root)
    if packed != wanted:
        text = f"missing {sorted(wanted - packed)}, not wanted {sorted(packed - wanted)}"
        raise SetupError(f"{wheel.name}: its files are not those of the sources: {text}")


def install_wheel(wheel: Path) -> None:
    """Install the wheel into its own environment, which is reused until the lock changes."""
    lock, stamp = ROOT / "requirements.lock", WHEEL_VENV / ".roadstead-runtime"
    wanted = digest(WHEEL_VENV, lock)
    if not (is_usable(WHEEL_VENV) and stamp.is_file() and stamp.read_text() == wanted):
        shutil.rmtree(WHEEL_VENV, ignore_errors=True)
        install(WHEEL_VENV, lock)
        stamp.write_text(wanted)
    pip = [str(python_of(WHEEL_VENV)), "-m", "pip", "--disable-pip-version-check", "install"]
    run([*pip, "--quiet", "--no-deps", "--force-reinstall", str(wheel)])


def run_demo() -> None:
    """Run the installed demo outside the checkout, without the checkout on the path."""
    roadstead = WHEEL_VENV / "bin" / "roadstead"
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    with tempfile.TemporaryDirectory() as elsewhere:
        result = subprocess.run(
            [roadstead, "demo", "--small"],
            cwd=elsewhere,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
    if result.returncode:
        raise SetupError(f"roadstead demo --small failed:\n{result.stdout}{result.stderr}")


def check_wheel() -> None:
    wheel = build_wheel()
    compare_wheel(wheel, ROOT)
    install_wheel(wheel)
    run_demo()


def write_bytecode() -> None:
    """Collect all tests, so that their modules are compiled once.

    Otherwise each process of the tests compiles all of them: its collection takes 22 s of processor
    time, and 10 s with the bytecode of another process.
    """
    command = [*BEHIND, str(BIN / "python"), "-m", "pytest", "--collect-only", "-q"]
    ended = subprocess.run(
        command, cwd=ROOT, env=with_bytecode(), capture_output=True, text=True, check=False
    )
    if ended.returncode:
        raise SetupError(f"the tests cannot be collected:\n{ended.stdout}{ended.stderr}")


FAST_CHECKS: tuple[tuple[str, Callable[[], None]], ...] = (
    ("ruff check", tool("ruff", "check", "--quiet", ".")),
    ("ruff format", tool("ruff", "format", "--check", "--quiet", ".")),
    ("mypy", tool("mypy")),
    ("import-linter", tool("lint-imports")),
)
CHECKS = (
    *FAST_CHECKS,
    # Otherwise the first tests that need the kernel compile it, and the others wait for them.
    ("kernel", tool("python", "-c", COMPILE)),
    ("bytecode of the tests", write_bytecode),
    ("wheel and its demo", check_wheel),
)


def run_checks(checks: Sequence[tuple[str, Callable[[], None]]]) -> list[str]:
    """Run all checks side by side, print each in order, and return the names of the failed ones.

    Most are one process on one core, and none needs another's result.
    """
    failed = []
    with ThreadPoolExecutor(max(len(checks), 1)) as pool:
        running = [(name, pool.submit(seconds_of, check)) for name, check in checks]
        for name, result in running:
            try:
                print(f"{name} ok ({result.result():.1f} s)", flush=True)
            except SetupError as error:
                failed.append(name)
                print(f"{name} FAILED\n{error}", flush=True)
    return failed


def seconds_of(check: Callable[[], None]) -> float:
    """Run a check; return its duration in seconds, in parallel with others."""
    started = time.monotonic()
    check()
    return time.monotonic() - started


def run_pytest(arguments: Sequence[str]) -> int:
    command = [str(BIN / "python"), "-m", "pytest", *arguments]
    return subprocess.run(command, cwd=ROOT, env=with_bytecode(), check=False).returncode


def run_beside(
    checks: Sequence[tuple[str, Callable[[], None]]], arguments: Sequence[str]
) -> tuple[list[str], int]:
    """Run checks in parallel with pytest; return the failed checks and its exit code.

    The output of pytest follows that of the checks.
    """
    colors = ("--color=yes",) if sys.stdout.isatty() else ()
    # With the priority of the checks: otherwise they would wait for the tests.
    command = [*BEHIND, str(BIN / "python"), "-m", "pytest", *colors, *arguments]
    with subprocess.Popen(
        command, cwd=ROOT, env=with_bytecode(), stdout=subprocess.PIPE, text=True, bufsize=1
    ) as tests:
        failed = run_checks(checks)
        assert tests.stdout is not None
        while text := tests.stdout.read(1):
            print(text, end="", flush=True)
    return failed, tests.returncode


def with_bytecode() -> dict[str, str]:
    """Return the environment, in which processes write the bytecode of Roadstead's modules.

    The tests start some hundred processes. Where none may write bytecode, as in many containers,
    each compiles all modules of Roadstead again; those of packages are compiled once, with .venv.
    """
    return {name: text for name, text in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}


def run_with_coverage() -> int:
    """Measure which lines of the covered packages their tests execute; fail below the floor."""
    os.chdir(ROOT)
    COVERAGE_FILE.parent.mkdir(exist_ok=True)
    # Few examples of each property: more of them execute the same lines.
    os.environ["ROADSTEAD_TESTS"] = "quick"
    measured = ("--cov", "--cov-report=", "--cov-fail-under=0")
    folders = [f"tests/{folder}" for folder in COVERED_FOLDERS]
    code = run_pytest((*PYTEST_ALL, "-m", "not ray", *measured, *folders))
    report = [str(BIN / "python"), "-m", "coverage", "json", "-q", "-o", str(COVERAGE_FILE)]
    subprocess.run([*report, "--fail-under=0"], check=True)
    percent, floor, text = coverage_by_package(json.loads(COVERAGE_FILE.read_text()))
    print(text)
    if percent < floor:
        print(f"Coverage is {percent:.1f}%, less than the floor of {floor}%.", file=sys.stderr)
    return code or int(percent < floor)


def coverage_by_package(report: Mapping[str, Any]) -> tuple[float, float, str]:
    """Return the percentage of the covered packages, its floor, and a table of the packages.

    report: as `coverage json` writes it.
    """
    lines: dict[str, list[int]] = {}
    for path, of_file in report["files"].items():
        parts = Path(path).parts
        package = parts[0] if parts[0] == "protocol" else "/".join(parts[:2])
        if package.removeprefix("roadstead/") in COVERED_FOLDERS:
            here = lines.setdefault(package, [0, 0])
            here[0] += of_file["summary"]["covered_lines"]
            here[1] += of_file["summary"]["num_statements"]
    totals = [sum(column) for column in zip(*lines.values(), strict=True)]
    rows = [*sorted(lines.items()), ("all", totals)]
    table = [f"| {name} | {of} | {100 * covered / of:.1f}% |" for name, (covered, of) in rows]
    text = "\n".join(("| package | lines | executed |", "|---|---|---|", *table))
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["coverage"]["report"]
    return 100 * totals[0] / totals[1], settings["fail_under"], text


def main(arguments: Sequence[str]) -> int:
    if list(arguments) == [COVERAGE]:
        return run_with_coverage()
    if list(arguments) in (["-h"], ["--help"]):
        print(__doc__)
        return 0
    is_quick = list(arguments) == [QUICK]
    if arguments and not is_quick:
        return run_pytest(arguments)
    os.chdir(ROOT)
    if is_quick:
        os.environ["ROADSTEAD_TESTS"] = "quick"
        folders = [f"tests/{folder}" for folder in QUICK_FOLDERS]
        failed, code = run_beside(FAST_CHECKS, (*PYTEST_QUICK, *folders))
    else:
        failed = run_checks(CHECKS)
        code = run_pytest(PYTEST_ALL)
    if failed:
        print(f"Failed beside the tests: {', '.join(failed)}.", file=sys.stderr)
    return 1 if failed else code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
