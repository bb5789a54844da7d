"""`python -m roadstead` is the console script."""

from roadstead.actors.entry import main

main()
