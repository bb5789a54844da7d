"""CEL selectors of devices, as DynamicResources evaluates them.

An expression is lexed and parsed (`lexer`, `parser`, `macros`), checked (`checker`, `validators`),
estimated (`cost`) and planned as closures (`planner`), once; then it is evaluated for each device.
The language is cel-go 0.26 with the libraries that Kubernetes 1.34 adds (`declarations`).
"""
