"""Compiles the kernel, so that its machine code is kept: `python -m roadstead.kernel`."""

import sys

from roadstead.kernel.start import compile_here

if __name__ == "__main__":
    compile_here(*sys.argv[1:2])
