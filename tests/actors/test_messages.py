"""Every message is declared once, is frozen, and has an actor that handles it."""

import importlib
import pkgutil
from dataclasses import fields, is_dataclass
from typing import get_args, get_origin, get_type_hints

import pytest

from roadstead.actors import messages
from roadstead.actors.binder.actor import BinderActor
from roadstead.actors.cache.actor import CacheActor
from roadstead.actors.interface import Method
from roadstead.actors.journal_copy.actor import JournalCopyActor
from roadstead.actors.messages.process import FENCE
from roadstead.actors.queue.actor import QueueActor
from roadstead.actors.runtime.dispatch import PROCESS_CALLS
from roadstead.actors.scheduler.actor import SchedulerActor
from roadstead.actors.worker.actor import WorkerActor

ACTORS = (QueueActor, CacheActor, BinderActor, JournalCopyActor, SchedulerActor, WorkerActor)
MODULES = [
    importlib.import_module(f"{messages.__name__}.{each.name}")
    for each in pkgutil.iter_modules(messages.__path__)
]
METHODS = {
    each.name: each
    for module in MODULES
    for each in vars(module).values()
    if isinstance(each, Method)
}
OF_THE_PROCESS = {*PROCESS_CALLS, FENCE.name}
"""Answered by the dispatcher, without the actor."""

MUTABLE = (list, dict, set, bytearray)


def types_in(hint):
    """Return a type and the types in its brackets."""
    yield get_origin(hint) or hint
    for each in get_args(hint):
        yield from types_in(each)


@pytest.mark.parametrize("name", sorted(METHODS.keys() - OF_THE_PROCESS))
def test_each_message_has_a_handler_of_its_name(name):
    handlers = [actor.__name__ for actor in ACTORS if callable(getattr(actor, name, None))]

    among = ", ".join(each.__name__ for each in ACTORS)
    assert handlers, f"add `async def {name}(self, message)` to one of {among}"


@pytest.mark.parametrize("name", sorted(METHODS))
def test_each_message_and_its_answer_are_frozen_and_contain_no_mutable_values(name):
    for each in (METHODS[name].message, METHODS[name].reply):
        assert is_dataclass(each), f"{each.__name__} must be a frozen dataclass"
        assert each.__dataclass_params__.frozen, f"{each.__name__} must be frozen"
        hints = get_type_hints(each)
        found = {field.name: set(types_in(hints[field.name])) for field in fields(each)}
        changeable = [field for field, types in found.items() if types & set(MUTABLE)]
        assert changeable == [], f"{each.__name__}: use tuples and bytes in these fields"
