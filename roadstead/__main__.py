"""The console script as `python -m roadstead`."""

import sys

if not sys.flags.safe_path:
    # Python puts the working directory first; modules in it must not be imported.
    del sys.path[0]

from roadstead.actors.entry import main

main()
