#!/usr/bin/env python3
"""Replay recorded decisions of the real kube-scheduler and compare ours; see --help.

scripts/parity.py PATH… [--paths plain,batches,batches+runs,1,2,5] [--dump DIR] [--jobs N]
"""

from __future__ import annotations

import importlib.util
import os
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PYTHON = ROOT / ".venv" / "bin" / "python"


def main() -> int:
    if importlib.util.find_spec("pydantic") is None and PYTHON.exists():
        os.execv(PYTHON, [str(PYTHON), *sys.argv])  # noqa: S606
    sys.path.insert(0, str(ROOT))
    from scripts.recordings.command import main as parity

    return parity()


if __name__ == "__main__":
    sys.exit(main())
