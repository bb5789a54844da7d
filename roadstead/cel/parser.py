"""The parser of CEL: tokens to a tree, macros expanded.

One function for each level of the grammar that can nest; one function parses all levels of binary
operators. Expressions that nest deeper than upstream allows are refused before they are built.

Upstream: cel-go 0.26 parser/parser.go, parser/helper.go (balanced `&&` and `||`), CEL.g4.
"""

from __future__ import annotations

from typing import Final, NoReturn

from roadstead.cel.errors import NO_OFFSET, Issue, IssuesError
from roadstead.cel.lexer import (
    END,
    IDENTIFIER,
    RESERVED,
    Token,
    number_of,
    tokens_of,
    unquoted,
)
from roadstead.cel.macros import expand
from roadstead.cel.tree import (
    AND,
    CONDITIONAL,
    INDEX,
    NEGATE,
    NOT,
    OPTIONAL_INDEX,
    OPTIONAL_SELECT,
    OR,
    PRODUCTS,
    RELATIONS,
    SUMS,
    Call,
    Ident,
    ListNode,
    Literal,
    MapEntry,
    MapNode,
    Select,
    StructNode,
    TreeNode,
    walk,
)

DEPTH_MAX: Final = 250
"""Upstream's bound of nesting, and of the length of a chain such as `a.b.c`."""

NODES_MAX: Final = 50_000
"""Maximum size of a tree; only macros that copy their targets can exceed it."""

_EXPECTED = (
    *("'['", "'{'", "'('", "')'", "']'", "'.'", "','", "'-'", "'!'", "'?'", "'true'", "'false'"),
    *("'null'", "NUM_FLOAT", "NUM_INT", "NUM_UINT", "STRING", "BYTES", "IDENTIFIER"),
)
"""Tokens that upstream's error lists where an expression should begin, in its order."""

_ALTERNATIVES = frozenset({"')'", "']'", "','", "'?'"})
"""Tokens of `_EXPECTED` that begin no expression.

An error lists each only where it is allowed in place of an expression, as `)` in `f()`.
"""

# Binary operators by precedence, the lowest first.
_LEVELS = (RELATIONS, SUMS, PRODUCTS)


def parse(source: str) -> TreeNode:
    """Return the tree of an expression.

    Raises:
        IssuesError: the text is no expression, or nests deeper than `DEPTH_MAX`.
    """
    tokens, issues = tokens_of(source)
    parser = _Parser(tokens, issues)
    root = parser.expression()
    parser.expect_end()
    if sum(1 for _ in walk(root)) > NODES_MAX:
        raise IssuesError([Issue(NO_OFFSET, "expression has too many parts")])
    if parser.issues:
        raise IssuesError(parser.issues)
    return root


class _Parser:
    """Parse one text. Syntax errors raise IssuesError at once; `issues` collects the others."""

    def __init__(self, tokens: list[Token], issues: list[Issue]) -> None:
        self._tokens = tokens
        self._at = 0
        self._depth = 0
        self.issues = issues

    @property
    def _token(self) -> Token:
        return self._tokens[self._at]

    def _next(self) -> Token:
        token = self._tokens[self._at]
        self._at += 1
        return token

    def _accept(self, kind: str) -> Token | None:
        return self._next() if self._token.kind == kind else None

    def _expect(self, kind: str) -> Token:
        if self._token.kind != kind:
            shown = kind if kind in (END, IDENTIFIER) else f"'{kind}'"
            if kind in (")", "]") and self._token.kind == END:
                self._fail(self._token.offset, f"Syntax error: missing {shown} at '<EOF>'")
            self._mismatch(shown)
        return self._next()

    def expect_end(self) -> None:
        """Fail unless all tokens are read."""
        token = self._token
        if token.kind == END:
            return
        is_last = self._tokens[self._at + 1].kind == END
        word = "extraneous" if is_last else "mismatched"
        self._fail(token.offset, f"Syntax error: {word} input '{token.text}' expecting <EOF>")

    def _mismatch(self, expected: str, word: str = "mismatched") -> NoReturn:
        text = f"Syntax error: {word} input '{self._token.text}' expecting {expected}"
        self._fail(self._token.offset, text)

    def _refuse_start(self, *alternatives: str) -> NoReturn:
        """Fail where an expression should begin, or one of the tokens `alternatives`."""
        names = [name for name in _EXPECTED if name not in _ALTERNATIVES or name in alternatives]
        following = self._tokens[self._at + 1] if self._token.kind != END else self._token
        # Upstream skips one token if the next one fits.
        follows_well = following.kind in names or f"'{following.kind}'" in names
        word = "extraneous" if follows_well else "mismatched"
        self._mismatch("{" + ", ".join(names) + "}", word)

    def _begins_expression(self) -> bool:
        kind = self._token.kind
        return kind in _EXPECTED or (f"'{kind}'" in _EXPECTED and f"'{kind}'" not in _ALTERNATIVES)

    def _fail(self, offset: int, text: str) -> NoReturn:
        raise IssuesError([*self.issues, Issue(offset, text)])

    def _deepen(self) -> None:
        """Count a level of nesting."""
        self._depth += 1
        if self._depth > DEPTH_MAX:
            self._fail(NO_OFFSET, f"expression recursion limit exceeded: {DEPTH_MAX}")

    def _lengthen(self, length: int) -> int:
        """Count an element of a chain such as `a.b[c]` or `a + b`; return the new length."""
        if length == DEPTH_MAX:
            self._fail(NO_OFFSET, "max recursion depth exceeded")
        return length + 1

    def expression(self) -> TreeNode:
        """Parse `a ? b : c`, or only `a`."""
        self._deepen()
        node = self._logical(OR)
        if question := self._accept("?"):
            chosen = self._logical(OR)
            self._expect(":")
            node = Call(question.offset, CONDITIONAL, [node, chosen, self.expression()])
        self._depth -= 1
        return node

    def _logical(self, name: str) -> TreeNode:
        sign = "||" if name == OR else "&&"
        terms, offsets = [self._term(name)], []
        while token := self._accept(sign):
            offsets.append(token.offset)
            terms.append(self._term(name))
        return _balanced(name, terms, offsets, 0, len(offsets) - 1) if offsets else terms[0]

    def _term(self, name: str) -> TreeNode:
        return self._logical(AND) if name == OR else self._operation(0)

    def _operation(self, level: int) -> TreeNode:
        """Parse operators of a precedence, an index of `_LEVELS`, and of higher ones."""
        if level == len(_LEVELS):
            return self._unary()
        names = _LEVELS[level]
        node = self._operation(level + 1)
        length = 0
        while self._token.kind in names:
            token = self._next()
            length = self._lengthen(length)
            # For upstream, the right operand is one level deeper.
            self._deepen()
            node = Call(token.offset, names[token.kind], [node, self._operation(level + 1)])
            self._depth -= 1
        return node

    def _unary(self) -> TreeNode:
        token = self._token
        # The sign of a number is a part of the literal.
        if token.kind == "-" and self._tokens[self._at + 1].kind in ("NUM_INT", "NUM_FLOAT"):
            return self._member()
        if token.kind not in ("-", "!"):
            return self._member()
        count = 0
        while self._accept(token.kind):
            count += 1
        node = self._member(is_signed=False)
        if count % 2 == 0:
            return node
        return Call(token.offset, NOT if token.kind == "!" else NEGATE, [node])

    def _member(self, is_signed: bool = True) -> TreeNode:
        """Parse `a.b`, `a[b]` and so on. is_signed: a number may have a sign."""
        node = self._primary(is_signed)
        length = 0
        while self._token.kind in (".", "["):
            token = self._next()
            length = self._lengthen(length)
            node = self._selected(node, token) if token.kind == "." else self._indexed(node, token)
        return node

    def _selected(self, operand: TreeNode, dot: Token) -> TreeNode:
        is_optional = self._accept("?") is not None
        if self._token.kind == "ESC_IDENTIFIER":
            self._fail(self._token.offset, "unsupported syntax: '`'")
        if self._token.kind != IDENTIFIER and not is_optional:
            self._fail(self._token.offset, _no_field(self._token))
        name = self._expect(IDENTIFIER)
        if is_optional:
            return Call(dot.offset, OPTIONAL_SELECT, [operand, Literal(name.offset, name.text)])
        opening = self._accept("(")
        if opening is None:
            return Select(dot.offset, operand, name.text)
        args = self._arguments()
        return self._call(opening.offset, name.text, operand, args)

    def _indexed(self, operand: TreeNode, bracket: Token) -> TreeNode:
        name = OPTIONAL_INDEX if self._accept("?") else INDEX
        if name == INDEX and not self._begins_expression():
            self._refuse_start("'?'")
        index = self.expression()
        self._expect("]")
        return Call(bracket.offset, name, [operand, index])

    def _arguments(self) -> list[TreeNode]:
        args: list[TreeNode] = []
        if self._accept(")"):
            return args
        if not self._begins_expression():
            self._refuse_start("')'")
        args.append(self.expression())
        while self._accept(","):
            args.append(self.expression())
        self._expect(")")
        return args

    def _call(
        self, offset: int, name: str, target: TreeNode | None, args: list[TreeNode]
    ) -> TreeNode:
        expanded = expand(offset, name, target, args)
        if isinstance(expanded, Issue):
            self.issues.append(expanded)
            return Literal(offset, None)
        return expanded or Call(offset, name, args, target)

    def _primary(self, is_signed: bool) -> TreeNode:
        token = self._next()
        match token.kind:
            case "(":
                node = self.expression()
                self._expect(")")
                return node
            case "[":
                return self._list(token)
            case "{":
                return self._map(token)
            case "." | "IDENTIFIER":
                return self._name(token)
            case "true" | "false":
                return Literal(token.offset, token.kind == "true")
            case "null":
                return Literal(token.offset, None)
            case "-" if is_signed:
                return self._number(token.offset, self._next(), "-")
            case "NUM_INT" | "NUM_UINT" | "NUM_FLOAT":
                return self._number(token.offset, token, "")
            case "STRING" | "BYTES":
                return self._text(token)
        self._at -= 1
        self._refuse_start()

    def _name(self, token: Token) -> TreeNode:
        dot = "." if token.kind == "." else ""
        name = self._expect(IDENTIFIER) if dot else token
        if struct := self._struct(dot, name):
            return struct
        if name.text in RESERVED:
            self.issues.append(Issue(token.offset, f"reserved identifier: {name.text}"))
        if opening := self._accept("("):
            args = self._arguments()
            return self._call(opening.offset, dot + name.text, None, args)
        return Ident(name.offset, dot + name.text)

    def _struct(self, dot: str, name: Token) -> TreeNode | None:
        at, parts = self._at, [name.text]
        while self._tokens[at].kind == "." and self._tokens[at + 1].kind == IDENTIFIER:
            parts.append(self._tokens[at + 1].text)
            at += 2
        if self._tokens[at].kind != "{":
            return None
        self._at = at + 1
        fields: list[tuple[str, TreeNode]] = []
        while not self._accept("}"):
            # Ignored: the checker refuses every message.
            self._accept("?")
            field = self._expect(IDENTIFIER).text
            self._expect(":")
            fields.append((field, self.expression()))
            if self._accept(",") is None and self._token.kind != "}":
                self._mismatch("{'}', ','}")
        return StructNode(self._tokens[at].offset, dot + ".".join(parts), fields)

    def _list(self, bracket: Token) -> TreeNode:
        elements: list[TreeNode] = []
        optional: list[int] = []
        self._accept_lone_comma("]")
        while not self._accept("]"):
            if self._accept("?"):
                optional.append(len(elements))
            elements.append(self.expression())
            if self._accept(",") is None and self._token.kind != "]":
                self._mismatch("{']', ','}")
        return ListNode(bracket.offset, elements, frozenset(optional))

    def _map(self, brace: Token) -> TreeNode:
        entries: list[MapEntry] = []
        self._accept_lone_comma("}")
        while not self._accept("}"):
            is_optional = self._accept("?") is not None
            key = self.expression()
            colon = self._expect(":")
            entries.append(MapEntry(colon.offset, key, self.expression(), is_optional))
            if self._accept(",") is None and self._token.kind != "}":
                self._mismatch("{'}', ','}")
        return MapNode(brace.offset, entries)

    def _accept_lone_comma(self, closing: str) -> None:
        # The grammar allows `[,]` and `{,}`.
        if self._token.kind == "," and self._tokens[self._at + 1].kind == closing:
            self._next()

    def _number(self, offset: int, token: Token, sign: str) -> TreeNode:
        try:
            return Literal(offset, number_of(token, sign))
        except ValueError as error:
            self.issues.append(Issue(offset, str(error)))
            return Literal(offset, None)

    def _text(self, token: Token) -> TreeNode:
        is_bytes = token.kind == "BYTES"
        try:
            text = unquoted(token.text[1:] if is_bytes else token.text, is_bytes)
        except ValueError as error:
            self.issues.append(Issue(token.offset, str(error)))
            return Literal(token.offset, "")
        return Literal(token.offset, text.encode("latin-1") if is_bytes else text)


def _no_field(token: Token) -> str:
    if token.kind in ("true", "false", "null"):
        return f"Syntax error: mismatched input '{token.text}' expecting IDENTIFIER"
    shown = "" if token.kind == END else token.text
    return f"Syntax error: no viable alternative at input '.{shown}'"


def _balanced(
    name: str, terms: list[TreeNode], offsets: list[int], low: int, high: int
) -> TreeNode:
    """Return a balanced tree of the operators `low` to `high`, so that long chains stay flat."""
    middle = (low + high + 1) // 2
    left = terms[middle] if middle == low else _balanced(name, terms, offsets, low, middle - 1)
    if middle == high:
        right = terms[middle + 1]
    else:
        right = _balanced(name, terms, offsets, middle + 1, high)
    return Call(offsets[middle], name, [left, right])
