"""A frozen dataclass with another `__init__` is what it was."""

import copy
import inspect
import pickle
from dataclasses import FrozenInstanceError, dataclass, field, replace
from typing import ClassVar

import pytest

from roadstead.protocol.fast_init import fast_init


@dataclass(frozen=True, slots=True)
class Plain:
    word: ClassVar[str] = "w"

    a: int
    b: str = "b"
    c: tuple[int, ...] = ()


@fast_init
@dataclass(frozen=True, slots=True)
class Quick:
    word: ClassVar[str] = "w"

    a: int
    b: str = "b"
    c: tuple[int, ...] = ()


@pytest.mark.parametrize("given", [((1,), {}), ((1, "x"), {"c": (2,)}), ((), {"a": 1, "c": (2,)})])
def test_it_has_the_same_fields_and_defaults(given):
    positional, named = given
    plain, quick = Plain(*positional, **named), Quick(*positional, **named)
    assert type(quick) is Quick
    assert (quick.a, quick.b, quick.c) == (plain.a, plain.b, plain.c)
    assert repr(quick) == repr(plain).replace("Plain", "Quick")
    assert hash(quick) == hash(plain)
    assert quick == Quick(*positional, **named)
    assert quick != replace(quick, a=2)
    assert replace(quick, b="z") == Quick(quick.a, "z", quick.c)


def test_it_stays_frozen_and_can_be_copied():
    quick = Quick(1, "x", (2,))
    with pytest.raises(FrozenInstanceError):
        quick.a = 2
    with pytest.raises(FrozenInstanceError):
        del quick.a
    assert copy.deepcopy(quick) == pickle.loads(pickle.dumps(quick)) == quick
    assert inspect.signature(Quick) == inspect.signature(Plain)


@pytest.mark.parametrize(
    ("positional", "named"), [((), {}), ((1, "b", (), 4), {}), ((1,), {"a": 1}), ((1,), {"d": 1})]
)
def test_wrong_arguments_are_refused(positional, named):
    with pytest.raises(TypeError):
        Quick(*positional, **named)


def test_classes_whose_fields_are_not_just_stored_are_refused():
    @dataclass(frozen=True, slots=True)
    class Made:
        a: list[int] = field(default_factory=list)

    @dataclass(frozen=True, slots=True)
    class Checked:
        a: int

        def __post_init__(self):
            assert self.a

    @dataclass(frozen=True, slots=True)
    class Inherited(Plain):
        d: int = 0

    @dataclass(frozen=True, slots=True)
    class Unnamed:
        a: int = field(default=0, init=False)

    for wrong in (Made, Checked, Inherited, Unnamed):
        with pytest.raises(TypeError, match="more than store positional"):
            fast_init(wrong)
