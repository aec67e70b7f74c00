"""What is known about a model that is exported: the figures of the command that made it, and the index behind it.

>>> About(measure="nDCG@10", proof={"default": 0.61, "tuned": 0.65, "difference": 0.04, "p": 0.003, "queries": 50},
...       on="test").gain
'nDCG@10 0.6100 → 0.6500 (+0.0400, p = 0.003) on 50 test queries'
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fliprank.data.files import StrPath
from fliprank.data.json_files import read_json
from fliprank.errors import InputError
from fliprank.models import Model, load_model
from fliprank.text.analysis import Analyzer

__all__ = ["About", "read_model"]

ON = {"test": "test queries", "cross_validated": "training queries, cross-validated"}


@dataclass(frozen=True)
class About:
    """What result.json says: the measure, the proof of the gain and where it was measured, whether it was adopted.

    `fields` and `analyzer` are those of the index that was tuned on, if there was one. `figures` are the means of each
    measure on the test, validation and training queries.
    """

    measure: str = ""
    on: str = ""
    proof: Mapping[str, Any] = field(default_factory=dict)
    figures: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    verdict: str = ""
    adopted: bool = True
    fields: tuple[str, ...] = ()
    analyzer: Analyzer | None = None

    @property
    def gain(self) -> str:
        """The measured gain in a line; empty where nothing was compared."""
        proof = self.proof
        if not proof:
            return ""
        where = f"{proof['queries']} {ON.get(self.on, self.on)}"
        means = f"{proof['default']:.4f} → {proof['tuned']:.4f}"
        return f"{self.measure} {means} ({proof['difference']:+.4f}, p = {proof['p']:.2g}) on {where}"

    @classmethod
    def of_folder(cls, folder: Path) -> About:
        """What the result.json of this folder says; nothing where there is none."""
        path = folder / "result.json"
        if not path.is_file():
            return cls()
        try:
            return cls._of(read_json(path))
        except (KeyError, TypeError, AttributeError, ValueError) as error:
            if isinstance(error, InputError):
                raise
            raise InputError(f"not a result of fliprank's, or a damaged one: {error!r}", path=path) from error

    @classmethod
    def _of(cls, told: Mapping[str, Any]) -> About:
        proofs = told.get("proof") or {}
        on = next(iter(proofs), "")
        wanted = ("default", "tuned", "difference", "p")
        proof = {name: float(proofs[on][name]) for name in wanted} if on else {}
        settings = told["settings"]
        analyzer = settings.get("analyzer")
        return cls(
            measure=str(told["measure"]),
            on=on,
            proof=proof | {"queries": int(proofs[on]["queries"])} if on else {},
            figures={part: dict(told[part]) for part in ("test", "valid", "train") if isinstance(told.get(part), dict)},
            verdict=str((told.get("verdict") or {}).get("sentence", "")),
            adopted=bool(told.get("adopted", True)),
            fields=tuple(map(str, settings.get("fields") or ())),
            analyzer=None if analyzer is None else Analyzer.from_json(analyzer),
        )


def read_model(place: StrPath) -> tuple[Model, About]:
    """The model of a folder and what is known about it: a model's own folder, or one that `train`, `tune` or `fuse`
    wrote, whose `model` is taken.
    """
    folder = Path(place)
    if (folder / "model").is_dir():
        return load_model(folder / "model"), About.of_folder(folder)
    model = load_model(folder)
    return model, About.of_folder(folder.parent) if folder.name == "model" else About()
