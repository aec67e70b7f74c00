"""Model folders: what is saved comes back, bit for bit; what is damaged, foreign or half-written is refused."""

from __future__ import annotations

import hashlib
import io
import json
import os
import zipfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from model_rows import random_rows

from fliprank.errors import InputError, UsageError
from fliprank.models import Linear, Model, Network, folder, load_model

ROWS = random_rows(np.random.default_rng(0), 40, 5)
LINEAR = Linear().prepared(ROWS, 1)
SMALL = Network(3).prepared(ROWS, 2)
LARGE = Network(200).prepared(ROWS, 3)


@pytest.mark.parametrize("model", [LINEAR, SMALL, LARGE], ids=["linear", "small net", "large net"])
def test_a_loaded_model_gives_the_same_scores(model: Model, tmp_path: Path) -> None:
    model.save(tmp_path / "m")
    loaded = load_model(tmp_path / "m")
    assert type(loaded) is type(model)
    np.testing.assert_array_equal(loaded.score(ROWS), model.score(ROWS))
    np.testing.assert_array_equal(loaded.pullback(ROWS, np.ones(40)), model.pullback(ROWS, np.ones(40)))
    assert loaded.params.names == model.params.names


@pytest.mark.parametrize("model", [LINEAR, LARGE], ids=["linear", "large net"])
def test_bounds_fixed_and_shared_parameters_come_back(model: Model, tmp_path: Path) -> None:
    first, second, third, *_ = model.params.names
    lower = np.full(len(model.params), -np.inf)
    lower[1] = -5.0
    params = replace(model.params, lower=lower).fix(third).tie({"both": [first, second]})
    model.at(params).save(tmp_path / "m")
    loaded = load_model(tmp_path / "m").params
    assert loaded.free_names == params.free_names
    assert loaded.slots.tolist() == params.slots.tolist()
    assert loaded.lower.tolist() == lower.tolist()
    assert loaded.values.tolist() == params.values.tolist()


def test_the_file_can_be_read_and_compared_by_a_person(tmp_path: Path) -> None:
    LINEAR.save(tmp_path / "a")
    LINEAR.at(LINEAR.params.replace(bias=0.25)).save(tmp_path / "b")
    a, b = ((tmp_path / name / "model.json").read_text().splitlines() for name in "ab")
    assert [line for line in b if line not in a] == ['    {"name": "bias", "value": 0.25},']
    assert a[:4] == ["{", '  "fliprank": "model",', '  "version": 1,', '  "kind": "linear",']


def test_equal_models_are_equal_files(tmp_path: Path) -> None:
    for name in "ab":
        LARGE.save(tmp_path / name)
    a, b = ({path.name: path.read_bytes() for path in (tmp_path / name).iterdir()} for name in "ab")
    assert a == b
    assert len(a) == 2


def test_saving_again_replaces_the_model_and_leaves_other_files_alone(tmp_path: Path) -> None:
    LARGE.save(tmp_path)
    (tmp_path / "notes.txt").write_text("mine")
    Network(200).prepared(ROWS, 4).save(tmp_path)
    assert sum(path.suffix == ".npz" for path in tmp_path.iterdir()) == 1
    LINEAR.save(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["model.json", "notes.txt"]
    assert isinstance(load_model(tmp_path), Linear)


@pytest.mark.parametrize("stop_at", ["arrays", "model.json"])
@pytest.mark.parametrize("error", [KeyboardInterrupt, OSError])
def test_an_interrupted_save_leaves_the_old_model(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stop_at: str, error: type[BaseException]
) -> None:
    old = Network(200).prepared(ROWS, 4)
    old.save(tmp_path / "m")
    before = {path.name: path.read_bytes() for path in (tmp_path / "m").iterdir()}
    write = folder.atomic_write

    def interrupted(path: Path) -> Any:
        if path.name.startswith(stop_at):
            raise error("no space left")
        return write(path)

    monkeypatch.setattr(folder, "atomic_write", interrupted)
    for target in ("m", "new"):
        with pytest.raises(InputError if error is OSError else error):
            LARGE.save(tmp_path / target)
    assert {path.name: path.read_bytes() for path in (tmp_path / "m").iterdir()} == before
    assert not (tmp_path / "new").exists()
    np.testing.assert_array_equal(load_model(tmp_path / "m").score(ROWS), old.score(ROWS))


def test_saving_again_after_an_interruption_of_the_same_model_keeps_its_arrays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    LARGE.save(tmp_path / "m")
    with monkeypatch.context() as patch:
        patch.setattr(folder, "_pretty", lambda _: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            LARGE.save(tmp_path / "m")
    np.testing.assert_array_equal(load_model(tmp_path / "m").score(ROWS), LARGE.score(ROWS))


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("data.csv", "1,2", "not a model folder: it holds data.csv"),
        ("model.json", '{"another": "program"}', "not a fliprank model"),
        ("model.json", '{"fliprank": "mod', "a damaged one: not overwritten"),
    ],
)
def test_a_foreign_folder_is_not_overwritten(tmp_path: Path, name: str, content: str, said: str) -> None:
    (tmp_path / name).write_text(content)
    with pytest.raises(InputError, match=said):
        LINEAR.save(tmp_path)
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [(name, content)]


def test_a_file_is_not_a_model_folder(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(InputError, match="is a file; a model is a folder"):
        LINEAR.save(tmp_path / "file")
    with pytest.raises(InputError, match="a file, not a model folder"):
        load_model(tmp_path / "file")
    with pytest.raises(InputError, match="no such model folder"):
        load_model(tmp_path / "nowhere")
    with pytest.raises(InputError, match=r"model\.json: can't be read: No such file"):
        load_model(tmp_path)


def test_what_can_not_be_loaded_is_not_saved(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="nothing to save yet"):
        Linear().save(tmp_path / "m")
    beyond = replace(LINEAR.params, upper=np.ones(6)).at(np.full(6, 2.0))
    with pytest.raises(UsageError, match="out of bounds: bias = 2 is not in"):
        LINEAR.at(beyond).save(tmp_path / "m")
    assert not (tmp_path / "m").exists()


@pytest.mark.parametrize("model", [LINEAR, LARGE], ids=["linear", "large net"])
def test_a_file_cut_off_anywhere_is_refused(model: Model, tmp_path: Path) -> None:
    model.save(tmp_path)
    for path in list(tmp_path.iterdir()):
        content = path.read_bytes()
        for length in {*range(0, len(content) - 2, max(1, len(content) // 40)), len(content) - 2}:
            path.write_bytes(content[:length])
            with pytest.raises(InputError, match=path.name):
                load_model(tmp_path)
        path.write_bytes(content)
    load_model(tmp_path)


def edited(model: Model, target: Path, change: Callable[[dict[str, Any]], Any]) -> Path:
    model.save(target)
    record = json.loads((target / "model.json").read_text())
    change(record)
    (target / "model.json").write_text(json.dumps(record))
    return target


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda r: r.update(kind="forest"), "kind: expected one of .*linear.*, found 'forest'"),
        (lambda r: r.update(kind=["linear"]), "kind: expected a string"),
        (lambda r: r.update(version=2), "version: expected format version 1.*found 2"),
        (lambda r: r.update(version="1"), "version: expected a whole number, found '1'"),
        (lambda r: r.pop("structure"), "structure: expected an object, it is missing"),
        (lambda r: r.pop("fliprank"), "not a fliprank model"),
        (lambda r: r["structure"].pop("features"), r"structure\.features: expected a list of objects, it is missing"),
        (lambda r: r["structure"].update(features=[1]), r"structure\.features: expected a list of objects"),
        (lambda r: r["structure"]["features"].pop(), "expected the 5 of this structure, found 6 of them"),
        (lambda r: r["structure"]["features"][1].update(scale=-1), r"features\[1\]\.scale: expected .* not negative"),
        (lambda r: r["structure"]["features"][1].update(mean=None), r"features\[1\]\.mean: expected a finite number"),
        (lambda r: r["structure"]["features"][1].update(name="f0"), r"two parameters are called 'w\.f0'"),
        (lambda r: r["parameters"].reverse(), "found 'w.f4' in place of 'bias'"),
        (lambda r: r["parameters"].pop(), "expected the 6 of this structure, found 5 of them"),
        (
            lambda r: r["parameters"][2].update(value="3"),
            r"parameters\[2\]\.value: expected a finite number, found '3'",
        ),
        (lambda r: r["parameters"][2].update(value=True), r"parameters\[2\]\.value: expected a finite number"),
        (lambda r: r["parameters"][2].update(value=10**400), r"parameters\[2\]\.value: expected a finite number"),
        (lambda r: r["parameters"][2].update(value=float("nan")), "NaN is not a number"),
        (lambda r: r["parameters"][2].update(lower=5.0, upper=6.0, default=5.5), "out of bounds"),
        (lambda r: r["parameters"][2].update(lower=5.0, upper=4.0), "no value between its bounds"),
        (lambda r: r["parameters"][2].update(fixed="yes"), r"fixed: expected true"),
        (lambda r: r["parameters"][2].update(shared=3), r"shared: expected a string"),
        (lambda r: r.update(arrays={"file": "../other.npz", "sha256": ""}), "an arrays file in the same folder"),
        (lambda r: r.update(arrays={"file": "arrays-0123456789abcdef.npz", "sha256": ""}), "can't be read"),
    ],
)
def test_a_tampered_record_is_refused(change: Callable[[dict[str, Any]], Any], said: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=said) as caught:
        load_model(edited(LINEAR, tmp_path / "m", change))
    assert caught.value.path is not None


@pytest.mark.parametrize("hidden", [0, -3, 2.5, 10**9])
def test_a_tampered_size_of_a_net_is_refused(hidden: Any, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"hidden|use Linear|parameters"):
        load_model(edited(SMALL, tmp_path / "m", lambda r: r["structure"].update(hidden=hidden)))


@pytest.mark.parametrize("text", ["", "[1, 2]", "[" * 100_000, '{"fliprank": Infinity}', "\xff", "7" * 5000, "null"])
def test_what_is_no_json_object_is_refused(text: str, tmp_path: Path) -> None:
    (tmp_path / "model.json").write_bytes(text.encode("latin-1"))
    with pytest.raises(InputError, match=r"model\.json"):
        load_model(tmp_path)


def npz(arrays: dict[str, np.ndarray]) -> bytes:
    file = io.BytesIO()
    np.savez(file, **arrays)
    return file.getvalue()


def claim(shape: str) -> bytes:
    """An arrays file whose header claims `shape`, with no data behind it."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as zipped:
        header = f"{{'descr': '<f8', 'fortran_order': False, 'shape': {shape}}}".ljust(117) + "\n"
        zipped.writestr("values.npy", b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header.encode())
    return file.getvalue()


def bomb() -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as zipped:
        zipped.writestr("values.npy", bytes(10_000_000))
    return file.getvalue()


def shared() -> bytes:
    """A file of which many members are the same bytes."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as zipped:
        zipped.writestr("values.npy", bytes(10_000))
        zipped.filelist += zipped.filelist * 30
    return file.getvalue()


COUNT = len(LARGE.params)


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (npz({"values": np.zeros(COUNT - 1)}), f"an array of {COUNT} parameter values"),
        (npz({"values": np.zeros(COUNT, np.int64)}), f"an array of {COUNT} parameter values"),
        (npz({"others": np.zeros(COUNT)}), f"an array of {COUNT} parameter values"),
        (npz({"values": np.full(COUNT, np.nan)}), "expected a finite number"),
        (npz({"values": np.array([{}] * COUNT)}), "not an arrays file"),
        (claim("(1000000000000000,)"), "not an array of numbers, or cut off"),
        (claim("(-1,)"), "not an arrays file"),
        (claim("(("), "not an arrays file"),
        (claim("(0x,)"), "not an arrays file"),
        (bomb(), "larger than the file"),
        (shared(), "larger than the file"),
        (b"PK\x03\x04 nothing", "not an arrays file"),
    ],
)
def test_hostile_arrays_with_the_right_checksum_are_refused(data: bytes, said: str, tmp_path: Path) -> None:
    digest = hashlib.sha256(data).hexdigest()
    name = f"arrays-{digest[:16]}.npz"
    target = edited(LARGE, tmp_path / "m", lambda r: r.update(arrays={"file": name, "sha256": digest}))
    (target / name).write_bytes(data)
    with pytest.raises(InputError, match=said):
        load_model(target)


def test_changed_arrays_are_refused(tmp_path: Path) -> None:
    LARGE.save(tmp_path)
    path = next(tmp_path.glob("*.npz"))
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    with pytest.raises(InputError, match=r"arrays-.*\.npz: .*the checksum differs"):
        load_model(tmp_path)


@pytest.mark.parametrize("kind", ["pipe", "device", "folder"])
@pytest.mark.parametrize("name", ["model.json", "arrays"])
def test_what_is_no_regular_file_is_never_read(name: str, kind: str, tmp_path: Path) -> None:
    LARGE.save(tmp_path)
    path = tmp_path / name if name == "model.json" else next(tmp_path.glob("*.npz"))
    path.unlink()
    {"pipe": os.mkfifo, "device": lambda at: at.symlink_to("/dev/zero"), "folder": Path.mkdir}[kind](path)
    with pytest.raises(InputError, match="not a regular file"):
        load_model(tmp_path)


def test_a_file_larger_than_any_model_is_refused_unread(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    LARGE.save(tmp_path)
    monkeypatch.setattr(folder, "LARGEST_ARRAYS", 1000)
    with pytest.raises(InputError, match="larger than any such file"):
        load_model(tmp_path)
