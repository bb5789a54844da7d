"""Unification: whether a value of one type may be used where another type is expected.

A type parameter is bound to the first type that it is compared with, and later to a more general
one if that is needed; the bindings hold for the whole expression.

Upstream: cel-go 0.26 checker/types.go, checker/mapping.go.
"""

from __future__ import annotations

from roadstead.cel.types import (
    DURATION,
    DYN,
    LIST,
    MAP,
    NULL,
    OPAQUE,
    PARAM,
    STRUCT,
    TIMESTAMP,
    TYPE,
    Type,
    optional_of,
)

Bindings = dict[str, Type]
"""Name of a type parameter → the type that is bound to it."""


def unwrap_optional(type_: Type) -> tuple[Type, bool]:
    """Return the content of an optional type, and whether it was one."""
    return (type_.params[0], True) if type_.is_optional else (type_, False)


def maybe_optional(type_: Type, is_optional: bool) -> Type:
    """Return the type, or the optional type of it."""
    return optional_of(type_) if is_optional else type_


def assign(bindings: Bindings, pairs: list[tuple[Type, Type]]) -> Bindings | None:
    """Return the bindings under which each first type may be used for its second, or None."""
    extended = dict(bindings)
    if all(_try_assign(extended, first, second) for first, second in pairs):
        return extended
    return None


def most_general(first: Type, second: Type) -> Type:
    """Return the more general of two types that unify."""
    return first if _is_more_general(first, second) else second


def substitute(bindings: Bindings, type_: Type, is_final: bool) -> Type:
    """Replace bound parameters by their types and, if `is_final`, other parameters by `dyn`.

    is_final: the whole expression is checked, so that no parameter is bound any more.
    """
    if type_.kind == PARAM:
        bound = bindings.get(type_.name)
        if bound is not None:
            return substitute(bindings, bound, is_final)
        return DYN if is_final else type_
    if not type_.params:
        return type_
    params = tuple(substitute(bindings, param, is_final) for param in type_.params)
    return Type(type_.name, type_.kind, params)


def is_equivalent(first: Type, second: Type) -> bool:
    """Return whether two types are the same but for the names of parameters."""
    if first.kind == PARAM and second.kind == PARAM:
        return True
    if first.name != second.name or first.kind != second.kind:
        return False
    return len(first.params) == len(second.params) and all(
        is_equivalent(one, other) for one, other in zip(first.params, second.params, strict=True)
    )


def _is_more_general(first: Type, second: Type) -> bool:
    """Return whether the first type is at least as general as the second."""
    if first.is_dyn or first.kind == PARAM:
        return True
    if second.is_dyn or second.kind == PARAM or first.kind != second.kind:
        return False
    if first.kind == TYPE:
        return True
    if first.kind in (LIST, MAP, OPAQUE):
        return (
            first.name == second.name
            and len(first.params) == len(second.params)
            and all(map(_is_more_general, first.params, second.params))
        )
    return first == second


def _try_assign(bindings: Bindings, first: Type, second: Type) -> bool:
    """Return whether the first type may be used for the second; may bind parameters of both."""
    if second.kind == PARAM:
        is_valid, was_bound = _try_bind(bindings, first, second)
        if is_valid or was_bound:
            return is_valid
    if first.kind == PARAM:
        return _try_bind(bindings, second, first)[0]
    if first.is_dyn_or_error or second.is_dyn_or_error:
        return True
    if first == NULL:
        return second == NULL or _is_nullable(second)
    if second == NULL:
        return _is_nullable(first)
    if first.kind == TYPE:
        return second.kind == TYPE
    if first.kind in (OPAQUE, LIST, MAP):
        return (
            first.kind == second.kind
            and first.name == second.name
            and len(first.params) == len(second.params)
            and all(
                _try_assign(bindings, one, other)
                for one, other in zip(first.params, second.params, strict=True)
            )
        )
    return first == second


def _is_nullable(type_: Type) -> bool:
    return type_.kind in (OPAQUE, STRUCT) or type_ in (DURATION, TIMESTAMP)


def _try_bind(bindings: Bindings, type_: Type, param: Type) -> tuple[bool, bool]:
    """Bind a parameter to a type if possible.

    Return whether the type fits the parameter, and whether the parameter was bound before.
    """
    if type_ == param:
        return True, True
    bound = bindings.get(param.name)
    if bound is None:
        if not _occurs(bindings, param, type_):
            bindings[param.name] = type_
            return True, False
        return False, False
    if type_ == bound:
        return True, True
    if not _try_assign(bindings, type_, bound):
        return False, True
    general = most_general(type_, bound)
    if not _occurs(bindings, param, general):
        bindings[param.name] = general
    return True, True


def _occurs(bindings: Bindings, param: Type, type_: Type) -> bool:
    """Return whether a type contains a parameter, which would make its binding infinite."""
    if param == type_:
        return True
    if type_.kind == PARAM:
        bound = bindings.get(type_.name)
        return bound is not None and _occurs(bindings, param, bound)
    return any(_occurs(bindings, param, inner) for inner in type_.params)
