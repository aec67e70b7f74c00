"""Tests against engines and frameworks that fuse lists: `make test-engines` installs them."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "models"))
