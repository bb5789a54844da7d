"""The checker of CEL: types and overloads of all nodes, or upstream's errors.

The type of a node may contain type parameters that a later node binds; those that are unbound when
all nodes are checked (`is_final`) become `dyn`. A dot before a name, as in `.device`, makes the
name absolute; without namespaces that changes nothing, so the dot is dropped.

Upstream: cel-go 0.26 checker/checker.go, checker/errors.go.
"""

from __future__ import annotations

from typing import Final

from roadstead.cel.declarations import FUNCTIONS, Overload
from roadstead.cel.errors import Issue
from roadstead.cel.tree import (
    AND,
    OPTIONAL_SELECT,
    OR,
    Call,
    Comprehension,
    Ident,
    ListNode,
    Literal,
    MapNode,
    Select,
    StructNode,
    TreeNode,
    qualified_name,
    walk,
)
from roadstead.cel.types import (
    ANY,
    BOOL,
    BYTES,
    DEVICE,
    DOUBLE,
    DYN,
    ERROR,
    INT,
    LIST,
    MAP,
    NAMED_TYPES,
    NULL,
    PARAM,
    QUANTITY,
    STRING,
    STRUCT,
    UINT,
    Type,
    list_of,
    map_of,
    optional_of,
    param,
    type_of,
)
from roadstead.cel.unify import (
    Bindings,
    assign,
    maybe_optional,
    most_general,
    substitute,
    unwrap_optional,
)
from roadstead.cel.values import Uint

DEVICE_VARIABLE: Final = "device"
_DEVICE_FIELDS = {
    "driver": STRING,
    "attributes": map_of(STRING, map_of(STRING, ANY)),
    "capacity": map_of(STRING, map_of(STRING, QUANTITY)),
    # Upstream's environment for stored expressions has this field with any value of the feature
    # gate DRAConsumableCapacity.
    "allowMultipleAllocations": BOOL,
}
# By Python class of a literal.
_LITERALS: dict[type, Type] = {
    bool: BOOL,
    int: INT,
    Uint: UINT,
    float: DOUBLE,
    str: STRING,
    bytes: BYTES,
    type(None): NULL,
}


def check(root: TreeNode) -> list[Issue]:
    """Set the types and overloads of all nodes; return the errors."""
    checker = _Checker()
    checker.check(root)
    for node in walk(root):
        if node.type is not None:
            node.type = substitute(checker.bindings, node.type, is_final=True)
    return checker.issues


class _Checker:
    """Check one expression.

    bindings: the types of the type parameters so far. _declared: types of variables by name, for
    each loop around the current node; the innermost is last.
    """

    def __init__(self) -> None:
        self._declared: list[dict[str, Type]] = [{DEVICE_VARIABLE: DEVICE}]
        self._param_count = 0
        self.bindings: Bindings = {}
        self.issues: list[Issue] = []

    def _report(self, offset: int, text: str) -> None:
        self.issues.append(Issue(offset, text))

    def _report_undeclared(self, offset: int, name: str) -> Type:
        self._report(offset, f"undeclared reference to '{name}' (in container '')")
        return ERROR

    def _report_mismatch(self, offset: int, expected: Type, actual: Type) -> None:
        self._report(
            offset, f"expected type '{expected.formatted()}' but found '{actual.formatted()}'"
        )

    def _new_param(self) -> Type:
        self._param_count += 1
        return param(f"_var{self._param_count - 1}")

    def _assign(self, *pairs: tuple[Type, Type]) -> bool:
        """Bind type parameters so that each first type may be used for its second, if possible."""
        bindings = assign(self.bindings, list(pairs))
        if bindings is None:
            return False
        self.bindings = bindings
        return True

    def _variable(self, name: str) -> Type | None:
        name = name.removeprefix(".")
        return next((types[name] for types in reversed(self._declared) if name in types), None)

    def check(self, node: TreeNode) -> Type:
        """Set the types of a node and of all nodes below it; return the type of the node."""
        match node:
            case Literal():
                type_ = _LITERALS[type(node.value)]
            case Ident():
                type_ = self._ident(node)
            case Select():
                type_ = self._select(node)
            case Call():
                type_ = self._call(node)
            case ListNode():
                type_ = self._list(node)
            case MapNode():
                type_ = self._map(node)
            case Comprehension():
                type_ = self._comprehension(node)
            case StructNode():
                type_ = self._report_undeclared(node.offset, node.name)
            case _:
                raise AssertionError(f"unknown node {type(node).__name__}")
        node.type = type_
        return type_

    def _ident(self, node: Ident) -> Type:
        variable = self._variable(node.name)
        if variable is not None:
            node.name = node.name.removeprefix(".")
            return variable
        named = NAMED_TYPES.get(node.name.removeprefix("."))
        if named is None:
            return self._report_undeclared(node.offset, node.name)
        node.name, node.is_type = node.name.removeprefix("."), True
        return type_of(named)

    def _select(self, node: Select) -> Type:
        name = None if node.is_test else qualified_name(node)
        named = NAMED_TYPES.get(name.removeprefix(".")) if name else None
        if name and named is not None:
            node.resolved = Ident(node.offset, name.removeprefix("."))
            node.resolved.is_type = True
            node.resolved.type = type_of(named)
            return node.resolved.type
        type_ = self._field(node.offset, node.operand, node.name, is_optional=False)
        return BOOL if node.is_test else substitute(self.bindings, type_, is_final=False)

    def _field(self, offset: int, operand: TreeNode, name: str, is_optional: bool) -> Type:
        """Return the type of a field; an optional if it is read by `.?` or from an optional."""
        operand_type = substitute(self.bindings, self.check(operand), is_final=False)
        type_, was_optional = unwrap_optional(operand_type)
        if type_.kind == MAP:
            field_type = type_.params[1]
        elif type_.kind == STRUCT:
            field_type = self._struct_field(offset, type_, name)
        elif type_.kind == PARAM:
            self._assign((DYN, type_))
            field_type = DYN
        else:
            if not type_.is_dyn_or_error:
                text = f"type '{type_.formatted()}' does not support field selection"
                self._report(offset, text)
            field_type = DYN
        return maybe_optional(field_type, is_optional or was_optional)

    def _struct_field(self, offset: int, type_: Type, name: str) -> Type:
        if type_ != DEVICE:
            self._report(offset, f"unexpected failed resolution of '{type_.name}'")
            return ERROR
        if name not in _DEVICE_FIELDS:
            self._report(offset, f"undefined field '{name}'")
            return ERROR
        return _DEVICE_FIELDS[name]

    def _call(self, node: Call) -> Type:
        if node.name == OPTIONAL_SELECT:
            name = node.args[1]
            assert isinstance(name, Literal)
            assert isinstance(name.value, str)
            name.type = STRING
            type_ = self._field(node.offset, node.args[0], name.value, is_optional=True)
            node.overloads = ("select_optional_field",)
            return substitute(self.bindings, type_, is_final=False)
        for arg in node.args:
            self.check(arg)
        if node.target is None:
            overloads = FUNCTIONS.get(node.name.removeprefix("."))
            if overloads is None:
                return self._report_undeclared(node.offset, node.name)
            node.name = node.name.removeprefix(".")
            return self._resolve(node, overloads)
        prefix = qualified_name(node.target)
        qualified = f"{prefix}.{node.name}".removeprefix(".") if prefix else ""
        if qualified in FUNCTIONS:
            node.name, node.target = qualified, None
            return self._resolve(node, FUNCTIONS[qualified])
        self.check(node.target)
        overloads = FUNCTIONS.get(node.name)
        if overloads is None:
            return self._report_undeclared(node.offset, node.name)
        return self._resolve(node, overloads)

    def _resolve(self, node: Call, overloads: tuple[Overload, ...]) -> Type:
        """Set the overloads that fit the arguments; return the type of the result."""
        nodes = node.args if node.target is None else [node.target, *node.args]
        types = [_checked_type(arg) for arg in nodes]
        if node.name in (AND, OR):
            node.overloads = (overloads[0].id,)
            return self._logical(node, types)
        result: Type | None = None
        matching: list[str] = []
        for overload in overloads:
            if overload.is_method != (node.target is not None):
                continue
            # Before the arguments are counted, as upstream: errors name type parameters by number.
            args, returned = self._with_new_params(overload)
            if len(args) != len(types) or not self._assign(*zip(types, args, strict=True)):
                continue
            matching.append(overload.id)
            returned = substitute(self.bindings, returned, is_final=False)
            if result is None:
                result = returned
            elif not result.is_dyn and returned != result:
                result = DYN
        if result is None:
            self._report_no_overload(node, types)
            return ERROR
        node.overloads = tuple(matching)
        return result

    def _logical(self, node: Call, types: list[Type]) -> Type:
        is_wrong = False
        for arg, type_ in zip(node.args, types, strict=True):
            if not self._assign((type_, BOOL)):
                self._report_mismatch(arg.offset, BOOL, type_)
                is_wrong = True
        return ERROR if is_wrong else BOOL

    def _with_new_params(self, overload: Overload) -> tuple[tuple[Type, ...], Type]:
        """Return arguments and result of an overload with new type parameters."""
        if not overload.params:
            return overload.args, overload.result
        new = {name: self._new_param() for name in sorted(overload.params)}
        args = tuple(substitute(new, arg, is_final=False) for arg in overload.args)
        return args, substitute(new, overload.result, is_final=False)

    def _report_no_overload(self, node: Call, types: list[Type]) -> None:
        names = [substitute(self.bindings, type_, is_final=True).formatted() for type_ in types]
        target = f"{names.pop(0)}." if node.target is not None else ""
        signature = f"{target}({', '.join(names)})"
        self._report(
            node.offset, f"found no matching overload for '{node.name}' applied to '{signature}'"
        )

    def _unwrap(self, node: TreeNode, is_optional: bool) -> Type:
        """Return the type of an element; with `?` (is_optional), that of its content."""
        type_ = _checked_type(node)
        if not is_optional:
            return type_
        content, was_optional = unwrap_optional(type_)
        if not was_optional and not content.is_dyn:
            self._report_mismatch(node.offset, optional_of(content), content)
        return content

    def _list(self, node: ListNode) -> Type:
        common: Type | None = None
        for at, element in enumerate(node.elements):
            self.check(element)
            common = self._common_type(common, self._unwrap(element, at in node.optional))
        return list_of(common or self._new_param())

    def _map(self, node: MapNode) -> Type:
        keys: Type | None = None
        values: Type | None = None
        for entry in node.entries:
            keys = self._common_type(keys, self.check(entry.key))
            self.check(entry.value)
            value = self._unwrap(entry.value, entry.is_optional)
            values = self._common_type(values, value)
        if keys is None or values is None:
            keys, values = self._new_param(), self._new_param()
        return map_of(keys, values)

    def _common_type(self, previous: Type | None, current: Type) -> Type:
        """Return the type of elements so far and one more; `dyn` if they have no common type."""
        if previous is None:
            return current
        if self._assign((previous, current)):
            return most_general(previous, current)
        # `validators.py` reports elements of different types.
        return DYN

    def _comprehension(self, node: Comprehension) -> Type:
        self.check(node.items)
        accumulated = self.check(node.start)
        items = substitute(self.bindings, _checked_type(node.items), is_final=False)
        self._declared.append({node.accumulator: accumulated})
        first, second = self._loop_variables(node, items)
        self._declared.append(
            {node.variable: first, **({node.second: second} if node.second else {})}
        )
        self._expect(node.condition, BOOL)
        self._expect(node.step, accumulated)
        self._declared.pop()
        result = self.check(node.result)
        self._declared.pop()
        return substitute(self.bindings, result, is_final=False)

    def _loop_variables(self, node: Comprehension, items: Type) -> tuple[Type, Type]:
        """Return the types of the variables of a loop; with one variable, only the first counts."""
        if items.kind == LIST:
            element = items.params[0]
            return (INT, element) if node.second else (element, element)
        if items.kind == MAP:
            return items.params[0], items.params[1]
        if items in (DYN, ERROR) or items.kind == PARAM:
            self._assign((DYN, items))
            return DYN, DYN
        text = (
            f"expression of type '{items.formatted()}' cannot be range of a comprehension "
            "(must be list, map, or dynamic)"
        )
        self._report(node.items.offset, text)
        return ERROR, ERROR

    def _expect(self, node: TreeNode, expected: Type) -> None:
        actual = self.check(node)
        if not self._assign((expected, actual)):
            self._report_mismatch(node.offset, expected, actual)


def _checked_type(node: TreeNode) -> Type:
    assert node.type is not None, "a node is used before it is checked"
    return node.type
