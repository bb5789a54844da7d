"""Registry: the factories of plugins by name; users' plugins are added to the in-tree ones."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from roadstead.config.plugin_args import PluginArgs
from roadstead.framework.plugin import EXTENSION_POINTS, Handle, Plugin
from roadstead.protocol.errors import InputError

Factory = Callable[[PluginArgs | None, Handle], Plugin]


@dataclass(slots=True)
class Registry:
    """Name → factory. A name is registered once."""

    factories: dict[str, Factory] = field(default_factory=dict)

    def register(self, name: str, factory: Factory) -> None:
        """Add a plugin. InputError if the name is registered already."""
        if name in self.factories:
            raise InputError("is registered already", obj="plugin", value=f'"{name}"')
        self.factories[name] = factory

    def build(self, name: str, args: PluginArgs | None, handle: Handle) -> Plugin:
        """Build a plugin. InputError if the name is unknown."""
        factory = self.factories.get(name)
        if factory is None:
            raise InputError("does not exist", obj="plugin", value=f'"{name}"')
        return factory(args, handle)

    def merged(self, others: Mapping[str, Factory]) -> Registry:
        """Return a registry that has a user's plugins as well."""
        result = Registry(dict(self.factories))
        for name, factory in others.items():
            result.register(name, factory)
        return result


def extension_points(plugin: type[Plugin] | Plugin) -> frozenset[str]:
    """Return the names of the extension points that a plugin implements."""
    plugin_class = plugin if isinstance(plugin, type) else type(plugin)
    return frozenset(
        point for point, base in EXTENSION_POINTS.items() if issubclass(plugin_class, base)
    )
