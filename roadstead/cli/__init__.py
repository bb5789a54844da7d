"""The command line.

`X_command` has the options and the help of the command `roadstead X`, and loads as little as these
need; it calls `X_run`, `X_output` or another module, which carries out the command when it is run.
The options of several commands are in `options` and the modules named after them. A session is one
call of the command line; a target is the output of a command: its form, and its folder.
"""
