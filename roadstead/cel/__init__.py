"""CEL selectors of devices, as DynamicResources evaluates them.

An expression is lexed and parsed (`lexer`, `parser`, `macros`), checked (`checker`, `validators`),
estimated (`cost`) and planned as closures (`planner`), once; then it is evaluated for each device.
The language is cel-go 0.26 with the libraries that Kubernetes 1.34 adds (`declarations`).

Terms of CEL:
    overload        One signature of a function. Operators are functions, too: `a + b` calls `_+_`,
                    with the overload add_int64 for two ints. Only macros call names with @.
    target          The object of a method call: `x` in `x.size()`.
    macro           A call that the parser replaces by other nodes, such as `x.all(i, i > 0)`.
    comprehension   The loop that most macros become. Its variable `accumulator` begins with a start
                    value and gets the value of the `step` for each item.
    optional        A value that may be missing: `optional.of(x)`, `optional.none()`, `m.?key`.
    dyn             The static type of values whose type is known only when they are evaluated.
    type parameter  A name in place of a type: `list(A)`. It is bound to a type for each call.

An *issue* is an error of compilation, with its position. A *cost* is a number of upstream's units,
by which it limits an evaluation; costs depend on *sizes*, the lengths of strings, lists and maps.
"""
