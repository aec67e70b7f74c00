"""Readers that fail in every way there is: what the fuzzer must notice."""

from __future__ import annotations

import os
import random
import time
from functools import partial
from pathlib import Path

from fuzz_mutations import Files, mutated, text
from fuzz_target import Target, only

from fliprank.errors import InputError

__all__ = ["TARGETS"]


def toy(folder: Path) -> None:
    """Do what the input asks for."""
    asked = only(folder).read_bytes() if any(folder.iterdir()) else b""
    if b"KeyError" in asked:
        raise KeyError("x")
    if b"loop" in asked:
        while True:
            pass
    if b"sleep" in asked:
        time.sleep(3600)
    if b"memory" in asked:
        bytearray(1 << 40)
    if b"crash" in asked:
        os.abort()
    if b"refuse" in asked:
        raise InputError("no")


def seeds() -> list[Files]:
    """One that is read."""
    return [{"x": b"some words and more of them\n"}]


def with_a_mine(rng: random.Random, files: Files) -> Files:
    """Every tenth input or so has what makes the toy fail."""
    out = mutated(rng, files, text)
    return {name: data + b" KeyError" if rng.random() < 0.1 else data for name, data in out.items()}


TARGETS = {"toy": Target(seeds, partial(mutated, change=text), toy), "mined": Target(seeds, with_a_mine, toy)}
