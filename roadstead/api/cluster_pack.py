"""A runtime environment of Ray with this Roadstead: a wheel, and the packages that it needs."""

from __future__ import annotations

import base64
import hashlib
import re
import sys
import zipfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, distribution, packages_distributions
from pathlib import Path
from typing import Final

import yaml

from roadstead.package_files import package_files
from roadstead.protocol.errors import InputError
from roadstead.version import __version__

NAME: Final = "roadstead"
DIST_INFO: Final = f"{NAME}-{__version__}.dist-info"

INSTALLED_ON_NODES: Final = frozenset({"ray"})
"""Packages that the nodes of a Ray cluster have already: a second Ray would break the first."""

BUILD_CHARS: Final = 12
"""Digits of a digest in the name of a wheel."""

FILE_TIME: Final = (1980, 1, 1, 0, 0, 0)
"""Time of all files in the wheel, so that the same files give the same bytes."""

_REQUIREMENT: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


@dataclass(frozen=True, slots=True)
class Packed:
    """The files that `pack` wrote.

    environment: of Ray, in YAML. modules: number of files in the wheel. packages: NAME==VERSION of
    each required package, without Ray.
    """

    environment: Path
    wheel: Path
    modules: int
    size_bytes: int
    packages: tuple[str, ...]


def pack(
    output: Path,
    *,
    plugin_files: Sequence[Path] = (),
    with_packages: bool = True,
    may_replace: bool = False,
) -> Packed:
    """Write the runtime environment to `output`, and the wheel into the same folder.

    plugin_files: modules of users, which become top-level modules. InputError if a file exists and
    is not to be replaced, or cannot be read or written, or if this package is not installed.
    """
    if output.exists() and not may_replace:
        raise InputError("exists already: use --force to replace it", source=str(output))
    scripts = _entry_points()
    packages = tuple(pinned_requirements(NAME)) if with_packages else ()
    files = {f"{NAME}/{path}": content for path, content in package_files()}
    for name, content in _plugin_files(plugin_files):
        if name in files:
            rule = "is the name of two files, of which the nodes could have one only"
            raise InputError(rule, source="--plugin-file", value=name)
        files[name] = content
    build = _build_of(files)
    wheel = output.resolve().parent / f"{NAME}-{__version__}-{build}-py3-none-any.whl"
    environment: dict[str, object] = {"py_modules": [str(wheel)]}
    if packages:
        environment["pip"] = {"packages": list(packages), "pip_check": False}
    try:
        wheel.parent.mkdir(parents=True, exist_ok=True)
        _write_wheel(wheel, build, files, scripts)
        output.write_text(yaml.safe_dump(environment, sort_keys=False))
    except OSError as failure:
        raise InputError(
            f"cannot be written: {failure.strerror}", source=str(failure.filename or output)
        ) from failure
    return Packed(output, wheel, len(files), wheel.stat().st_size, packages)


def pinned_requirements(name: str) -> Iterator[str]:
    """Yield NAME==VERSION of the packages that a package requires, directly or indirectly.

    Requirements of extras, and packages that are not installed (for other systems), are left out.
    """
    queued, queue = {name, *INSTALLED_ON_NODES}, [name]
    versions: dict[str, str] = {}
    while queue:
        try:
            requirements = distribution(queue.pop()).requires or []
        except PackageNotFoundError:
            continue
        for requirement in requirements:
            match = _REQUIREMENT.match(requirement)
            if match is None or "extra ==" in requirement:
                continue
            # Names are compared in normalized form, or one package would be pinned twice.
            needed = _package_name(match[0])
            if needed in queued:
                continue
            queued.add(needed)
            queue.append(needed)
            try:
                versions[needed] = distribution(needed).version
            except PackageNotFoundError:
                continue
    for each in sorted(versions):
        yield f"{each}=={versions[each]}"


def _plugin_files(paths: Sequence[Path]) -> Iterator[tuple[str, bytes]]:
    """Yield (name, content) of each file. InputError for one that would hide another module."""
    other_modules = _module_names() if paths else frozenset()
    for path in paths:
        if path.suffix != ".py" or not path.stem.isidentifier() or path.stem in other_modules:
            rule = "must be a Python module (NAME.py) with a name of its own"
            raise InputError(rule, source="--plugin-file", value=str(path))
        try:
            yield path.name, path.read_bytes()
        except OSError as failure:
            raise InputError(f"cannot be read: {failure.strerror}", source=str(path)) from failure


def _module_names() -> frozenset[str]:
    """Return the names of Python's own modules, and of the packages that the nodes need."""
    needed = {
        NAME,
        *INSTALLED_ON_NODES,
        *(each.partition("==")[0] for each in pinned_requirements(NAME)),
    }
    of_packages = {
        module
        for module, names in packages_distributions().items()
        if any(_package_name(name) in needed for name in names)
    }
    return sys.stdlib_module_names | of_packages | {NAME}


def _package_name(name: str) -> str:
    """Return the name of a package in normalized form (PEP 503)."""
    return re.sub(r"[-_.]+", "-", name).lower()


def _build_of(files: dict[str, bytes]) -> str:
    """Return a build tag (PEP 427) that differs from those of wheels with other files."""
    # Ray knows a wheel by its name alone: with one name for all builds, its nodes would use the
    # first one that they got, also after a plugin in it was changed.
    digest = hashlib.sha256()
    for name, content in sorted(files.items()):
        digest.update(f"{name}\0{len(content)}\0".encode() + content)
    # A build tag begins with a digit.
    return f"0{digest.hexdigest()[:BUILD_CHARS]}"


def _entry_points() -> str:
    """Return the entry points of this package, such as the command `roadstead`."""
    try:
        return distribution(NAME).read_text("entry_points.txt") or ""
    except PackageNotFoundError:
        problem = "is not installed, so the packages that it needs are not known: pip install it"
        raise InputError(problem, source="package", value=NAME) from None


def _write_wheel(path: Path, build: str, files: dict[str, bytes], scripts: str) -> None:
    """Write a wheel (PEP 427) with these files and its metadata. scripts: its entry points."""
    # No requirements: for them pip would install a second Ray, which hides that of the cluster.
    metadata = f"Metadata-Version: 2.1\nName: {NAME}\nVersion: {__version__}\n"
    wheel_info = (
        "Wheel-Version: 1.0\nGenerator: roadstead\nRoot-Is-Purelib: true\n"
        f"Tag: py3-none-any\nBuild: {build}\n"
    )
    everything = {
        **files,
        f"{DIST_INFO}/METADATA": metadata.encode(),
        f"{DIST_INFO}/WHEEL": wheel_info.encode(),
        f"{DIST_INFO}/entry_points.txt": scripts.encode(),
    }
    records = [f"{name},{_digest(data)},{len(data)}\n" for name, data in everything.items()]
    everything[f"{DIST_INFO}/RECORD"] = "".join([*records, f"{DIST_INFO}/RECORD,,\n"]).encode()
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in everything.items():
            entry = zipfile.ZipInfo(name, FILE_TIME)
            entry.compress_type = zipfile.ZIP_DEFLATED
            # The mode of the file, in the upper half of this field.
            entry.external_attr = 0o644 << 16
            archive.writestr(entry, data)


def _digest(data: bytes) -> str:
    """Return a digest as the RECORD of a wheel states it."""
    text = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
    return f"sha256={text}"
