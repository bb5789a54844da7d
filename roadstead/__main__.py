"""`python -m roadstead` is the console script."""

import sys

if not sys.flags.safe_path:
    # The working directory, which Python puts first: what lies there is not imported.
    del sys.path[0]

from roadstead.actors.entry import main

main()
