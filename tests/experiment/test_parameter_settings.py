"""What a person says about parameters is taken as meant, or refused in words that name it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fliprank.errors import FliprankError, InputError, UsageError
from fliprank.experiment.parameter_settings import read_settings
from fliprank.models.parameters import Parameters


def bm25f() -> Parameters:
    weight, share = (1.0, 0.0, np.inf), (0.75, 0.0, 1.0)
    return Parameters.of(
        {"k": (1.2, 0, np.inf), "title.w": weight, "title.b": share, "body.w": weight, "body.b": share}
    )


def test_what_is_fixed_is_freed_by_its_name_or_by_how_names_end() -> None:
    fixed = bm25f().fix(["k", "title.b", "body.b", "title.w"])
    assert read_settings(None, free=["title.b"]).apply(fixed).free_names == ("title.b", "body.w")
    assert read_settings(None, free=["b"]).apply(fixed).free_names == ("title.b", "body.w", "body.b")
    shared = bm25f().tie({"b": ["title.b", "body.b"]})
    assert "body.b" in read_settings(None, free=["b"]).apply(shared).free_names
    with pytest.raises(FliprankError, match="no parameter is called 'c'"):
        read_settings(None, free=["c"]).apply(fixed)


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


def test_settings_come_from_a_file_and_the_line_wins(tmp_path: Path) -> None:
    path = tmp_path / "tune.toml"
    path.write_text(
        'free = ["k"]\n[start]\n"title.w" = 2\n[fix]\n"body.w" = true\n[share]\nb = ["title.b", "body.b"]\n'
    )
    params = Parameters.of(
        {"k": (1.2, 0, np.inf), "title.w": 1.0, "title.b": (0.75, 0, 1), "body.w": 1.0, "body.b": (0.75, 0, 1)}
    ).fix("k")
    told = read_settings(path, start=["title.w=3"]).apply(params)
    assert told.free_names == ("k", "title.w", "b")
    assert told["title.w"] == told.default[1] == 3.0


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[starts]\nx = 1", "unknown part 'starts'"),
        ("[start]\nx = 'one'", "start of x is not a number"),
        ("[bounds]\nx = [1]", "bounds of x are not"),
        ("share = 3", "share is not a table"),
        ("[share]\nb = 'all'", "share of b is not a list of names"),
        ("[start", "can't be read as TOML"),
    ],
)
def test_a_wrong_file_of_settings_is_an_error_that_names_it(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "tune.toml"
    path.write_text(text)
    with pytest.raises(InputError, match=said) as error:
        read_settings(path)
    assert "tune.toml" in str(error.value)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"start": ["k"]}, "name=number"),
        ({"start": ["k=x"]}, "name=number"),
        ({"bounds": ["k=3"]}, "name=low:high"),
        ({"fix": ["kk=3"]}, "no parameter is called 'kk'"),
        ({"share": ["w"]}, "no free parameter's name ends in .w"),
        ({"start": ["b=7"]}, "out of bounds|outside its bounds"),
    ],
)
def test_a_wrong_setting_is_an_error_that_says_what_was_meant(given: dict[str, list[str]], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        read_settings(None, **given).apply(Parameters.of({"k": (1.2, 0, np.inf), "b": (0.75, 0, 1)}))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[start]\nk1 = 1" + "0" * 400, "start of k1 is larger than any number"),
        ("[start]\nk1 = 1" + "0" * 5000, "can't be read as TOML"),
        ("[bounds]\nk1 = [0, 1" + "0" * 400 + "]", "bounds of k1 is larger than any number"),
        ("[start]\n" + ".".join(["a"] * 3000) + " = 1", "without end|can't be read"),
        ("[start]\nk1 = " + "[" * 5000, "can't be read as TOML"),
    ],
)
def test_numbers_and_tables_without_end_are_refused(tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "p.toml").write_text(text)
    with pytest.raises(InputError, match=said):
        read_settings(tmp_path / "p.toml")
