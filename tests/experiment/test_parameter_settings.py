"""What a person says about parameters is taken as meant, or refused in words that name it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fliprank.errors import FliprankError, InputError
from fliprank.experiment.parameter_settings import read_settings
from fliprank.models.parameters import Parameters


def bm25f() -> Parameters:
    weight, share = (1.0, 0.0, np.inf), (0.75, 0.0, 1.0)
    return Parameters.of(
        {"k": (1.2, 0, np.inf), "title.w": weight, "title.b": share, "body.w": weight, "body.b": share}
    )


def test_names_with_dots_need_no_quotes_in_toml(tmp_path: Path) -> None:
    path = tmp_path / "tune.toml"
    path.write_bytes(
        b"\xef\xbb\xbf[start]\r\ntitle.w = 2\r\n[bounds]\r\nbody.w = [0.5, 3]\r\n[fix]\r\ntitle.b = true\r\n"
    )
    told = read_settings(path).apply(bm25f())
    assert told["title.w"] == 2.0
    assert told.upper.tolist()[3] == 3.0
    assert "title.b" not in told.free_names


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"bounds": ["title.b=0:5"]}, "bounds of title.b, 0 to 5: out of bounds, it lies between 0 and 1"),
        ({"bounds": ["title.w=-5:5"]}, "bounds of title.w, -5 to 5: out of bounds, it lies between 0 and inf"),
        ({"bounds": ["title.w=3:1"]}, "bounds of title.w, 3 to 1: the first must be a number that is not above"),
        ({"bounds": ["title.w=nan:1"]}, "the first must be a number"),
        ({"bounds": ["title.w=a:b"]}, "it is name=low:high"),
        ({"start": ["title.b=2"]}, "title.b=2: out of bounds, it lies between 0 and 1"),
        ({"fix": ["title.w=-1"]}, "title.w=-1: out of bounds, it lies between 0 and inf"),
        ({"start": ["title.w=nan"]}, "title.w=nan"),
        ({"share": ["b", "c=title.b,title.w"]}, "share: title.b can share one value only"),
    ],
)
def test_what_a_model_can_not_be_given_is_refused(given: dict[str, Any], said: str) -> None:
    with pytest.raises(FliprankError) as caught:
        read_settings(None, **given).apply(bm25f())
    assert said in str(caught.value)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[fix]\nk = false\n", "fix of k is not a number"),
        ("[start]\nk = true\n", "start of k is not a number"),
        ("[start]\nk = nan\n", "start of k is not a number"),
        ("k =\n", "can't be read as TOML"),
        ("", "the file is empty"),
        ("x = '\udcff'", "is not UTF-8"),
    ],
)
def test_broken_toml_is_named(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "tune.toml"
    path.write_bytes(text.encode(errors="surrogateescape"))
    with pytest.raises(InputError, match=r"tune\.toml") as caught:
        read_settings(path)
    assert said in str(caught.value)


def test_a_file_that_is_not_there_is_named_once(tmp_path: Path) -> None:
    with pytest.raises(InputError) as caught:
        read_settings(tmp_path / "none.toml")
    assert str(caught.value) == f"{tmp_path / 'none.toml'}: no such file"
