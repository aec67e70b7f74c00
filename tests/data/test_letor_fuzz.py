"""Whatever the bytes of a file, the reader gives candidates or an InputError, never another error or a crash."""

from __future__ import annotations

import gzip
import tempfile
import warnings
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from fliprank.data import letor
from fliprank.data.candidates import Candidates
from fliprank.data.letor import read_letor
from fliprank.errors import InputError

VALID = b"".join(
    b"%d qid:%d 1:0.%d 2:-1.5e-3 %d:7 #docid = GX%d inc = 1\n" % (r % 3, r // 2, r, r + 5, r) for r in range(8)
)
TOKENS = [
    *(b"0", b"-1", b"1e400", b"nan", b"NULL", b"qid:", b"qid:3", b"qi", b"1:", b":1", b"1:2", b"2:1e-400", b"0:0"),
    *(b"7:NULL", b"7:nan", b"7:inf", b"900:1", b"1000001:1", b"1:1797693134862315708145274237317043567980e270"),
    *(
        b"#",
        b"#docid",
        b"# docid =",
        b"#docid = x",
        b" ",
        b"\t",
        b"\n",
        b"\r\n",
        b"\0",
        b"\xff",
        "é".encode(),
        b"1:0x10",
    ),
    b"1:" + b"9" * 400,
]

mutations = st.lists(
    st.tuples(st.integers(0, len(VALID)), st.integers(0, 12), st.sampled_from(TOKENS) | st.binary(max_size=3)),
    min_size=1,
    max_size=4,
)
soups = st.lists(st.sampled_from(TOKENS), max_size=30).flatmap(
    lambda tokens: st.sampled_from([b"", b" ", b"\n"]).map(lambda glue: glue.join(tokens))
)
options = st.fixed_dictionaries(
    {
        "missing": st.sampled_from(["error", "min", "zero", "nan"]),
        "n_features": st.sampled_from([None, 1, 12, 1000]),
        "unjudged": st.sampled_from([None, -1.0, 0.0]),
        "cache": st.just(False),
    }
)
relaxed = settings(deadline=None, max_examples=400, suppress_health_check=[HealthCheck.too_slow])


def check(raw: bytes, arguments: dict[str, object], chunk: int, sizes: bytes | None = None, name: str = "x") -> None:
    """Read these bytes; what is read must hold together."""
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch, warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        patch.setattr(letor, "CHUNK", chunk)
        (Path(folder) / name).write_bytes(raw)
        if sizes is not None:
            (Path(folder) / "x.query").write_bytes(sizes)
        try:
            rows = read_letor(Path(folder) / name, **arguments)
        except InputError:
            return
    assert isinstance(rows, Candidates)
    assert rows.offsets[-1] == len(rows) > 0
    assert not np.isinf(rows.labels).any()
    unjudged = arguments.get("unjudged", -1)
    assert not (rows.labels == unjudged).any()
    assert unjudged is not None or not np.isnan(rows.labels).any()
    if rows.features is not None:
        assert not np.isinf(rows.features).any()
        assert arguments["missing"] == "nan" or not np.isnan(rows.features).any()


@relaxed
@given(mutations, options, st.sampled_from([16, 1 << 20]))
def test_mutated_files_give_candidates_or_an_input_error(
    changes: list[tuple[int, int, bytes]], arguments: dict[str, object], chunk: int
) -> None:
    raw = VALID
    for place, length, token in changes:
        raw = raw[:place] + token + raw[place + length :]
    check(raw, arguments, chunk)


@relaxed
@given(soups | st.binary(max_size=60), options, st.sampled_from([16, 1 << 20]), st.none() | st.binary(max_size=6))
@example(b"0 q", {"missing": "error", "cache": False}, 16, None)
@example(b"0 1:N", {"missing": "nan", "cache": False}, 16, b"1")
@example(b"0 1:1 #doci", {"missing": "error", "cache": False}, 16, b"1")
@example(b"0 1:1", {"missing": "error", "cache": False}, 16, b"0\n1\n0\n")
def test_any_bytes_give_candidates_or_an_input_error(
    raw: bytes, arguments: dict[str, object], chunk: int, sizes: bytes | None
) -> None:
    check(raw, arguments, chunk, sizes)


ZIPPED = gzip.compress(VALID, mtime=0)


@relaxed
@given(st.integers(0, len(ZIPPED)), st.binary(max_size=4), st.integers(0, len(ZIPPED)))
def test_damaged_gzip_gives_candidates_or_an_input_error(place: int, token: bytes, stop: int) -> None:
    raw = (ZIPPED[:place] + token + ZIPPED[place + len(token) :])[: max(stop, 2)]
    check(raw, {"missing": "error", "cache": False}, 64, name="x.gz")
