"""The command line.

The module `schedule_command` has the options and the help of `roadstead schedule`, and loads as
little as these need; it calls `schedule_run`, which carries out the command; so with the others.
Options of several commands are in `options` and in the modules named after them. A session is one
call of the command line; a target is the output of a command: its form, and its folder.
"""
