"""Mutants: every small change that a typing mistake could make in a module's source.

A mutant is one change of the syntax tree. Mutants of a source are numbered in the order of a
traversal, so that a number identifies the same change for as long as the source stays the same.
Checks (`assert`, `validate`, `strict=True`), annotations, decorators and texts are left out.
"""

import ast
import copy
from collections.abc import Callable
from dataclasses import dataclass

COMPARISONS = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}
ARITHMETIC = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.FloorDiv,
    ast.FloorDiv: ast.Mult,
    ast.BitOr: ast.BitAnd,
    ast.BitAnd: ast.BitOr,
}
CALLS = {"min": "max", "max": "min", "any": "all", "all": "any"}
CHECKS = {"validate", "check_invariants", "compare", "__repr__", "__str__"}
"""Functions that read a state and change nothing: their mutants are no defects of a run."""


@dataclass(frozen=True, slots=True)
class Mutant:
    """One change: its number within the module, its place, and the text before and after."""

    path: str
    number: int
    line: int
    function: str
    before: str
    after: str

    @property
    def name(self) -> str:
        return f"{self.path}:{self.line} #{self.number}"

    def __str__(self) -> str:
        return f"{self.name} {self.function}: {self.before} -> {self.after}"


class _Sites(ast.NodeTransformer):
    """Visits every change and makes the one with the wanted number.

    wanted: None to only list them.
    """

    def __init__(self, path: str, wanted: int | None = None) -> None:
        self.path, self.wanted = path, wanted
        self.found: list[Mutant] = []
        self._functions: list[str] = []

    def _offer(self, node: ast.AST, make: Callable[[], ast.AST]) -> ast.AST:
        """Return the changed node if this is the wanted change, else the node."""
        number = len(self.found)
        if self.wanted is not None and number != self.wanted:
            self.found.append(Mutant(self.path, number, 0, "", "", ""))
            return node
        new = make()
        before, after = _text(node), _text(new)
        function = ".".join(self._functions)
        self.found.append(Mutant(self.path, number, node.lineno, function, before, after))
        if self.wanted is None:
            return node
        return ast.copy_location(new, node)

    def _enter(self, node: ast.AST, name: str) -> ast.AST:
        self._functions.append(name)
        node.body = [self.visit(each) for each in node.body]
        self._functions.pop()
        return node

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:
        return self._enter(node, node.name)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        if node.name in CHECKS:
            return node
        node.args.defaults = [self.visit(each) for each in node.args.defaults]
        node.args.kw_defaults = [each and self.visit(each) for each in node.args.kw_defaults]
        return self._enter(node, node.name)

    visit_AsyncFunctionDef = visit_FunctionDef

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST:
        if node.value is not None:
            node.value = self.visit(node.value)
        return node

    def _leave(self, node: ast.AST) -> ast.AST:
        return node

    visit_Assert = visit_Raise = visit_JoinedStr = visit_Import = visit_ImportFrom = _leave
    visit_TypeAlias = _leave

    def visit_Expr(self, node: ast.Expr) -> ast.AST:
        call = node.value.value if isinstance(node.value, ast.Await) else node.value
        if isinstance(node.value, ast.Constant):
            return node
        if isinstance(call, ast.Call):
            if _is_log(call):
                return node
            new = self._offer(node, ast.Pass)
            if new is not node:
                return new
        return self.generic_visit(node)

    def visit_Assign(self, node: ast.Assign) -> ast.AST:
        if any(isinstance(each, ast.Attribute | ast.Subscript) for each in node.targets):
            new = self._offer(node, ast.Pass)
            if new is not node:
                return new
        if isinstance(node.targets[0], ast.Name) and node.targets[0].id == "__all__":
            return node
        node.value = self.visit(node.value)
        return node

    def visit_Delete(self, node: ast.Delete) -> ast.AST:
        return self._offer(node, ast.Pass)

    def visit_AugAssign(self, node: ast.AugAssign) -> ast.AST:
        new = self._offer(node, ast.Pass)
        if new is not node:
            return new
        if type(node.op) in ARITHMETIC:
            swapped = ARITHMETIC[type(node.op)]
            new = self._offer(node, lambda: ast.AugAssign(node.target, swapped(), node.value))
            if new is not node:
                return new
        node.value = self.visit(node.value)
        return node

    def visit_If(self, node: ast.If) -> ast.AST:
        for outcome in (True, False):

            def decided(outcome: bool = outcome) -> ast.If:
                return ast.If(ast.Constant(outcome), node.body, node.orelse)

            new = self._offer(node, decided)
            if new is not node:
                return new
        return self.generic_visit(node)

    def visit_IfExp(self, node: ast.IfExp) -> ast.AST:
        new = self._offer(node, lambda: ast.IfExp(node.test, node.orelse, node.body))
        return new if new is not node else self.generic_visit(node)

    def visit_comprehension(self, node: ast.comprehension) -> ast.AST:
        for place, test in enumerate(node.ifs):
            new = self._offer(test, lambda: ast.Constant(value=True))
            if new is not test:
                node.ifs[place] = new
                return node
        return self.generic_visit(node)

    def visit_Compare(self, node: ast.Compare) -> ast.AST:
        if len(node.ops) == 1:
            swapped = COMPARISONS[type(node.ops[0])]
            new = self._offer(node, lambda: ast.Compare(node.left, [swapped()], node.comparators))
            if new is not node:
                return new
        return self.generic_visit(node)

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.AST:
        swapped = ast.Or if isinstance(node.op, ast.And) else ast.And
        new = self._offer(node, lambda: ast.BoolOp(swapped(), node.values))
        return new if new is not node else self.generic_visit(node)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.AST:
        if isinstance(node.op, ast.Not | ast.USub):
            new = self._offer(node, lambda: node.operand)
            if new is not node:
                return new
        return self.generic_visit(node)

    def visit_BinOp(self, node: ast.BinOp) -> ast.AST:
        # Outside of functions `X | Y` is a union of types.
        if type(node.op) in ARITHMETIC and self._functions:
            swapped = ARITHMETIC[type(node.op)]
            new = self._offer(node, lambda: ast.BinOp(node.left, swapped(), node.right))
            if new is not node:
                return new
        return self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> ast.AST:
        if isinstance(node.func, ast.Name) and node.func.id in CALLS:
            other = ast.Name(CALLS[node.func.id], ast.Load())
            new = self._offer(node, lambda: ast.Call(other, node.args, node.keywords))
            if new is not node:
                return new
        return self.generic_visit(node)

    def visit_keyword(self, node: ast.keyword) -> ast.AST:
        # `strict` of a zip only checks that lengths are the same.
        if node.arg == "strict" and _text(node.value) == "True":
            return node
        return self.generic_visit(node)

    def visit_Constant(self, node: ast.Constant) -> ast.AST:
        value = node.value
        if isinstance(value, bool):
            return self._offer(node, lambda: ast.Constant(not value))
        if isinstance(value, int | float):
            return self._offer(node, lambda: ast.Constant(value + 1))
        return node

    def visit_Break(self, node: ast.Break) -> ast.AST:
        return self._offer(node, ast.Continue)

    def visit_Continue(self, node: ast.Continue) -> ast.AST:
        return self._offer(node, ast.Break)


def _text(node: ast.AST) -> str:
    """The first line of a node's source."""
    lines = ast.unparse(ast.fix_missing_locations(copy.deepcopy(node))).splitlines()
    return lines[0] if len(lines) < 2 else f"{lines[0]} ..."


def _is_log(call: ast.Call) -> bool:
    """Whether a call only writes to a log."""
    function = call.func
    if isinstance(function, ast.Name):
        return function.id == "log"
    owner = function.value if isinstance(function, ast.Attribute) else None
    return isinstance(owner, ast.Name) and owner.id in ("logger", "log", "_log", "LOG", "logging")


def mutants_of(path: str, source: str) -> list[Mutant]:
    """All mutants of a module, in the order of their numbers."""
    sites = _Sites(path)
    sites.visit(ast.parse(source))
    return sites.found


def mutate(path: str, source: str, number: int) -> ast.Module:
    """The module with one change made, ready to compile. IndexError for an unknown number."""
    sites = _Sites(path, number)
    tree = sites.visit(ast.parse(source))
    if number >= len(sites.found):
        raise IndexError(f"{path} has {len(sites.found)} mutants, there is no number {number}")
    return ast.fix_missing_locations(tree)
