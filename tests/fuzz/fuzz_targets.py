"""What is fuzzed: for each reader, valid inputs, how they are changed, and how they are read."""

from __future__ import annotations

import fuzz_file_targets  # noqa: F401
import fuzz_text_targets  # noqa: F401
from fuzz_target import TARGETS, Target

__all__ = ["TARGETS", "Target"]
