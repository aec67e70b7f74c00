"""Tests against engines and frameworks that `make test-engines` installs."""

import sys
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parents[1] / folder) for folder in ("models", "verify")]
