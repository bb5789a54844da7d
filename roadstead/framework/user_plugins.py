"""Users' plugins: found by dotted path or entry point, and built like in-tree plugins.

A path is given on the command line or by an installed package, never by a manifest, because the
module is imported. A configuration can only name a plugin that is already known.
"""

from __future__ import annotations

import hashlib
import importlib
import inspect
import os
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from importlib.metadata import entry_points
from itertools import islice
from pathlib import Path
from types import ModuleType

from roadstead.config.errors import ConfigError, Problem
from roadstead.config.plugin_args import PluginArgs
from roadstead.framework.arguments import PluginArguments, parse_arguments
from roadstead.framework.guarded import guard
from roadstead.framework.per_node import NodePlugin, adapt
from roadstead.framework.plugin import Handle, Plugin
from roadstead.framework.plugin_source import raised_at
from roadstead.framework.registry import Factory, extension_points
from roadstead.protocol.errors import InputError, cut_short

GROUP = "roadstead.plugins"
"""Entry point group; an entry's name is the plugin's name."""

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9._-]{0,62}")
_BASES = ("roadstead.framework.plugin", "roadstead.framework.per_node")
"""Modules that define base classes: a class of these modules is not a plugin itself."""


def load_plugin_class(path: str, directory: str = "") -> type[Plugin]:
    """Return a plugin class by its dotted path, `package.module:Class` or `package.module.Class`.

    A per-node class is adapted. directory: a folder with a file or package of the module's name,
    from which the module is imported if it is not installed; "" for none. InputError if there is no
    such class, or if it cannot be a plugin.
    """
    module_name, _, class_name = path.replace(":", ".").rpartition(".")
    found = _imported(path, module_name, class_name, directory)
    if not isinstance(found, type) or not issubclass(found, Plugin | NodePlugin):
        raise _refusal(path, "is not a Roadstead plugin class")
    return _valid_class(path, found)


def plugins_of_file(file: str, directory: str) -> tuple[str, ...]:
    """Return the dotted paths of the plugin classes that a file of `directory` defines, in order.

    InputError for a file that is in another folder, has the name of an installed module, cannot be
    imported, or defines no plugin class.
    """
    path = Path(file)
    if path.resolve().parent != Path(directory).resolve():
        raise _refusal(file, "is not in the working directory, which plugins are imported from")
    module = _imported(file, path.stem, None, directory)
    origin = getattr(module, "__file__", None)
    if origin is None or Path(origin).resolve() != path.resolve():
        problem = (
            f"bears the name of a module that is installed ({origin or 'built in'}): rename it"
        )
        raise _refusal(file, problem)
    # Classes that the file imports are not its own.
    found = tuple(
        f"{path.stem}:{name}"
        for name, each in vars(module).items()
        if isinstance(each, type)
        and issubclass(each, Plugin | NodePlugin)
        and each.__module__ == path.stem
        and isinstance(getattr(each, "name", None), str)
    )
    if not found:
        raise _refusal(file, "defines no plugin class with a name")
    return found


def _imported(path: str, module_name: str, class_name: str | None, directory: str) -> object:
    """Return a class of a module, or the module itself for None. InputError if there is none."""
    if directory and module_name:
        _allow_import(module_name.partition(".")[0], directory)
    try:
        module = importlib.import_module(module_name)
        return module if class_name is None else getattr(module, class_name)
    except (Exception, SystemExit) as failure:
        # The module is the user's: whatever it raises is reported to the user.
        reason = _text_of_failure(failure, module_name, directory)
        raise _refusal(path, f"cannot be loaded ({reason})") from failure


MAX_DIGEST_FILES, MAX_DIGEST_BYTES = 2_000, 16 * 1024 * 1024
"""How many files of a plugin's package, and how many bytes of them, the digest of the plugin covers
at most: each process of a run computes the digest when it starts."""


class NamedModules(MetaPathFinder):
    """An import finder for modules of certain names in folders outside the path.

    It is the last finder of `sys.meta_path`, so that no file of the user hides a module of an
    installed package, and no other file of the folders is imported. folders: module name → folder.
    """

    def __init__(self) -> None:
        self.folders: dict[str, str] = {}

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return the module's spec, as importlib requires it."""
        folder = self.folders.get(fullname)
        return None if folder is None else PathFinder.find_spec(fullname, [folder], target)


_NAMED = NamedModules()


def _allow_import(name: str, folder: str) -> None:
    """Let a module of this name be imported from a folder outside the path."""
    if _NAMED not in sys.meta_path:
        sys.meta_path.append(_NAMED)
    if _NAMED.folders.get(name) != folder:
        _NAMED.folders[name] = folder
        importlib.invalidate_caches()


def load_plugins(paths: Iterable[str], directory: str = "") -> dict[str, type[Plugin]]:
    """Return plugin classes by name; `directory` as in `load_plugin_class`.

    InputError for a path without a plugin, or a name that two plugins have.
    """
    plugin_classes: dict[str, type[Plugin]] = {}
    for path in dict.fromkeys(paths):
        plugin_class = load_plugin_class(path, directory)
        if plugin_class.name in plugin_classes:
            raise _refusal(path, f'is a second plugin of the name "{plugin_class.name}"')
        plugin_classes[plugin_class.name] = plugin_class
    return plugin_classes


def digests_of(paths: Iterable[str]) -> tuple[tuple[str, str], ...]:
    """Return (module, SHA-256 of its code) of loaded plugins, by module; "" for one without a file.

    The code of a module in a package is all Python files of the package, which it may import.
    paths: dotted paths that `load_plugins` has loaded in this process.
    """
    modules = {path.replace(":", ".").rpartition(".")[0] for path in paths}
    return tuple((name, _digest_of(sys.modules[name])) for name in sorted(modules))


def _digest_of(module: ModuleType) -> str:
    file = getattr(module, "__file__", None)
    if not file:
        return ""
    package = _outermost_package(module.__name__)
    if package is None:
        return hashlib.sha256(Path(file).read_bytes()).hexdigest()
    digest, bytes_left = hashlib.sha256(), MAX_DIGEST_BYTES
    for path in islice(_python_files(package), MAX_DIGEST_FILES):
        size_bytes = path.stat().st_size
        bytes_left -= size_bytes
        digest.update(f"{path.relative_to(package).as_posix()}\0{size_bytes}\0".encode())
        # Of files beyond the limit, the digest covers only name and size.
        digest.update(path.read_bytes() if bytes_left >= 0 else b"")
    return digest.hexdigest()


def _outermost_package(name: str) -> Path | None:
    """Return the folder of the outermost regular package with this module; None without one."""
    parts = name.split(".")
    for count in range(1, len(parts) + 1):
        package = sys.modules.get(".".join(parts[:count]))
        file = getattr(package, "__file__", None)
        if file and hasattr(package, "__path__"):
            return Path(file).parent
    return None


def _python_files(folder: Path) -> Iterator[Path]:
    """Yield the Python files of a package, in an order that is the same on all machines."""
    for root, folders, names in os.walk(folder):
        folders[:] = sorted(each for each in folders if each != "__pycache__")
        paths = (Path(root, name) for name in sorted(names) if name.endswith(".py"))
        # Not the broken links that editors leave next to an open file.
        yield from filter(Path.is_file, paths)


def check_digests(expected: Iterable[tuple[str, str]], paths: Iterable[str]) -> None:
    """Raise InputError if a plugin's module differs from the one that the run was started with.

    expected: `digests_of` in the process that started the run.
    """
    found = dict(digests_of(paths))
    for name, digest in expected:
        if found[name] != digest:
            where = getattr(sys.modules[name], "__file__", None) or name
            problem = (
                "differs from the code that the run was started with, all modules of its package "
                "included: use the same files on all nodes"
            )
            raise InputError(problem, source=str(where))


def installed_plugins() -> dict[str, str]:
    """Return plugin name → dotted path for installed packages with plugins, without importing."""
    return {entry.name: entry.value for entry in entry_points(group=GROUP)}


def factories_of(
    plugin_classes: Mapping[str, type[Plugin]], *, is_strict: bool = False
) -> dict[str, Factory]:
    """Return plugins' factories; each validates its arguments. is_strict: as in `guard`."""
    return {
        name: factory_of(plugin_class, is_strict=is_strict)
        for name, plugin_class in plugin_classes.items()
    }


def factory_of(plugin_class: type[Plugin], *, is_strict: bool = False) -> Factory:
    """Return a factory; it passes `args` and `handle` if the constructor has such parameters.

    args: an instance of the class's `arguments` model, or the raw value if the class has none.
    """
    names = inspect.signature(plugin_class).parameters

    def build(args: PluginArgs | None, handle: Handle) -> Plugin:
        parameters: dict[str, object] = {"args": _arguments(plugin_class, args), "handle": handle}
        if args and plugin_class.arguments is None and "args" not in names:
            problem = Problem(
                f'pluginConfig "{plugin_class.name}".args', "the plugin takes no arguments"
            )
            raise ConfigError("build", [problem])
        try:
            plugin = plugin_class(
                **{name: each for name, each in parameters.items() if name in names}
            )
        except (Exception, SystemExit) as failure:
            location = raised_at(plugin_class.__module__, failure)
            why = _text_of_exception(failure) + (f", at {location}" if location else "")
            raise _refusal(plugin_class.name, f"cannot be built ({why})") from failure
        return guard(plugin, is_strict=is_strict)

    return build


def check_arguments(
    plugin_classes: Mapping[str, type[Plugin]], document: Mapping[str, object], source: str
) -> None:
    """Validate the arguments of these plugins; a ConfigError names each place in the document.

    document: a KubeSchedulerConfiguration that is valid apart from these arguments.
    """
    problems: list[Problem] = []
    for path, name, args in _plugin_configs(document):
        plugin_class = plugin_classes.get(name)
        if plugin_class is None or plugin_class.arguments is None:
            continue
        try:
            parse_arguments(plugin_class.arguments, args, field=path)
        except ConfigError as error:
            problems += error.problems
    if problems:
        raise ConfigError("validate", problems, source=source)


def _plugin_configs(document: Mapping[str, object]) -> Iterable[tuple[str, str, object]]:
    """Yield (field path of the arguments, plugin name, arguments) of each pluginConfig entry."""
    for i, profile in enumerate(_list(document, "profiles")):
        for j, entry in enumerate(_list(profile, "pluginConfig")):
            assert isinstance(entry, Mapping), "a decoded configuration"
            yield f"profiles[{i}].pluginConfig[{j}].args", str(entry["name"]), entry.get("args")


def _list(holder: object, name: str) -> Sequence[object]:
    assert isinstance(holder, Mapping), "a decoded configuration"
    found = holder.get(name) or ()
    assert isinstance(found, Sequence), "a decoded configuration"
    return found


def _arguments(plugin_class: type[Plugin], args: PluginArgs | None) -> object:
    if plugin_class.arguments is None:
        return args
    return parse_arguments(
        plugin_class.arguments, args, field=f'pluginConfig "{plugin_class.name}".args'
    )


def _valid_class(path: str, found: type[Plugin] | type[NodePlugin]) -> type[Plugin]:
    """Return the class, adapted if it is per node. InputError if it cannot be a plugin."""
    name = getattr(found, "name", None)
    if found.__module__ in _BASES or not isinstance(name, str):
        raise _refusal(path, "is not a Roadstead plugin class (it has no name)")
    if not _NAME.fullmatch(name):
        raise _refusal(path, f"has the name {cut_short(name)}: want letters, digits, . _ or -")
    if found.arguments is not None and not issubclass(found.arguments, PluginArguments):
        raise _refusal(path, "has arguments that are no PluginArguments model")
    try:
        plugin_class = adapt(found) if issubclass(found, NodePlugin) else found
    except TypeError as failure:
        raise _refusal(path, str(failure)) from failure
    missing = sorted(getattr(plugin_class, "__abstractmethods__", ()))
    if missing:
        raise _refusal(path, f"lacks {', '.join(missing)}")
    if not extension_points(plugin_class):
        raise _refusal(path, "implements no extension point")
    return plugin_class


def _text_of_exception(failure: BaseException) -> str:
    """Return the text of an exception."""
    if isinstance(failure, SystemExit):
        return f"it ends the process with status {failure.code or 0}"
    if isinstance(failure, TypeError | ValueError):
        return str(failure)
    return f"{type(failure).__name__}: {failure}"


def _text_of_failure(failure: BaseException, module_name: str, directory: str) -> str:
    """Return why a module could not be imported, with the line that raised."""
    module = sys.modules.get(module_name)
    if isinstance(failure, AttributeError) and module is not None:
        return f"{failure}; it is {getattr(module, '__file__', 'built in')}"
    if isinstance(failure, SyntaxError):
        return f"{failure.msg}, at {failure.filename}:{failure.lineno}"
    reason = str(failure) if isinstance(failure, ImportError) else repr(failure)
    if isinstance(failure, SystemExit):
        reason = _text_of_exception(failure)
    location = raised_at(module_name, failure)
    if location:
        return f"{reason}, at {location}"
    and_directory = f" and in {directory}" if directory else ""
    return f"{reason}; looked among the installed packages{and_directory}"


def _refusal(path: str, problem: str) -> InputError:
    return InputError(problem, obj="plugin", value=path)
