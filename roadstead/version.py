"""The version of the package, for modules below the Python API."""

__version__ = "0.1.0"
