"""Compiles the kernel, so that its machine code is kept: `python -m roadstead.kernel`."""

from roadstead.kernel.start import load

if __name__ == "__main__":
    load()
