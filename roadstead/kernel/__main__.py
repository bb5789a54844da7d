"""Compile the kernel, so that its machine code is cached: `python -m roadstead.kernel`."""

import sys

from roadstead.kernel.compile_process import AS_CHILD, end_with_parent

if __name__ == "__main__":
    arguments = sys.argv[1:]
    # Only a run keeps the standard input of its compilations open. A user's command may have an
    # empty one, as in the build of an image.
    if arguments[:1] == [AS_CHILD]:
        end_with_parent()
        del arguments[0]

    from roadstead.kernel.compiled_code import compile_in_process

    compile_in_process(*arguments[:1])
