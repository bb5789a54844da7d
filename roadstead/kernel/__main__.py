"""Compile the kernel, so that its machine code is cached: `python -m roadstead.kernel`."""

import sys

from roadstead.kernel.compile_process import end_with_parent

if __name__ == "__main__":
    end_with_parent()

    from roadstead.kernel.start import compile_in_process

    compile_in_process(*sys.argv[1:2])
