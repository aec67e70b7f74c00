"""`fliprank train`."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from fliprank.cli.app import app
from fliprank.errors import UsageError

__all__ = ["train"]

TRAIN_EXAMPLES = """
Examples:

  fliprank train train.txt --valid vali.txt --test test.txt --out fit

  fliprank train --folds MQ2008 --model network --hidden 10 --objective "softndcg(sigma=0.3)" --out fit

  fliprank train train.parquet --valid vali.parquet --method taylor2008 --objective ranknet --out fit --resume

  fliprank train train.txt --valid vali.txt --model cascade --stages 2500,100,10 --stage-model linear,linear,network:8

  fliprank train train.txt --valid vali.txt --method exact --set shrink=0.01 --out fit

Methods that go down an objective: lbfgs, adam, taylor2006, taylor2008; auto is adam or lbfgs, whichever suits.

Methods that climb the measure itself: exact (the one for linear models), line, golden, brent, powell, evolution, grid.

Objectives: mse, ranknet, lambdarank, softndcg, softap, softrr, softp@k, softrecall@k, with parameters in brackets.
"""


class Kind(StrEnum):
    """The models that can be trained from features."""

    linear = "linear"
    network = "network"
    cascade = "cascade"


@app.command(epilog=TRAIN_EXAMPLES)
def train(
    rows: Annotated[Path | None, typer.Argument(help="Training rows: LETOR, Parquet or term statistics.")] = None,
    valid: Annotated[Path | None, typer.Option(help="Validation rows: they choose epoch and settings.")] = None,
    test: Annotated[Path | None, typer.Option(help="Test rows: only looked at when all is chosen.")] = None,
    folds: Annotated[Path | None, typer.Option(help="Instead: a folder with Fold1/{train,vali,test}.txt, ...")] = None,
    out: Annotated[Path, typer.Option(help="Folder for model, figures and checkpoints.")] = Path("fit"),
    model: Annotated[Kind, typer.Option(help="What to train.")] = Kind.linear,
    hidden: Annotated[int, typer.Option(min=1, help="Hidden nodes of a network.")] = 10,
    stages: Annotated[str, typer.Option(help="Of a cascade: how many documents each stage sees.")] = "2500,1000,100,10",
    stage_model: Annotated[
        str, typer.Option(help="Of a cascade, by stage: linear, network:HIDDEN, trees:LEAVES, bm25f, ...")
    ] = "linear",
    stage_features: Annotated[
        str | None, typer.Option(help="Of a cascade: names by stage, as 'bm25*,clicks;*;*'; all by default.")
    ] = None,
    stage_objective: Annotated[str | None, typer.Option(help="Of a cascade: --objective by stage.")] = None,
    stage_method: Annotated[str | None, typer.Option(help="Of a cascade: --method by stage.")] = None,
    objective: Annotated[str, typer.Option(help="What to train on.")] = "lambdarank@10",
    measure: Annotated[str, typer.Option(help="What to choose by, and report.")] = "nDCG(dcg='exp-log2')@10",
    method: Annotated[str, typer.Option(help="How: auto, lbfgs, adam, exact, line, ...: see below.")] = "auto",
    given: Annotated[
        list[str] | None, typer.Option("--set", metavar="NAME=VALUE", help="A setting of the method.")
    ] = None,
    polish: Annotated[
        bool, typer.Option("--polish", help="Then climb the measure itself, as far as validation queries approve.")
    ] = False,
    epochs: Annotated[int | None, typer.Option(min=1, help="At most so many; the method's own by default.")] = None,
    restarts: Annotated[int, typer.Option(min=1, help="Random starts of each setting.")] = 4,
    sweep: Annotated[bool, typer.Option(help="Choose settings that are not given on validation queries.")] = True,
    sample: Annotated[
        str | None, typer.Option(help="Unlabelled training rows: 'rated', or so many a labelled.")
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Of all random numbers.")] = 0,
    resume: Annotated[bool, typer.Option("--resume", help="Go on from the checkpoints in OUT.")] = False,
) -> None:
    """Train a ranker on a smooth objective, chosen by the measure that counts."""
    if (rows is None) == (folds is None):
        raise UsageError("give training rows or --folds, one of them")
    from fliprank import console
    from fliprank.experiment import trained, training
    from fliprank.experiment.telescope import stage_options
    from fliprank.models import Linear, Model, Network
    from fliprank.models.cascade_names import parse_cascade

    folder = trained.check_folder(out)
    sets = training.read_folds(folds) if folds is not None else training.read_sets(rows or "", valid, test)
    options: dict[str, Any] = {"objective": objective, "measure": measure, "method": method, "restarts": restarts}
    options |= {"sweep": sweep, "polish": polish, "sample": sample, "seed": seed, "resume": resume}
    options |= _settings(given or [], options) | ({} if epochs is None else {"epochs": epochs})
    start: Model = Linear() if model is Kind.linear else Network(hidden=hidden)
    if model is Kind.cascade:
        start = parse_cascade(stages, stage_model, stage_features)
        options |= {"options": stage_options(start, objective=stage_objective, method=stage_method)}
        options |= {"sample": "3" if sample is None else sample}
    result = trained.train_and_write(start, sets, folder, console.training_progress, **options)
    console.show(console.training_table(result))
    console.show(f"written: {folder / 'result.json'}")


def _settings(given: list[str], options: dict[str, Any]) -> dict[str, Any]:
    """{name: value} of NAME=VALUE: a whole number, a number, or else a word."""
    found: dict[str, Any] = {}
    for one in given:
        name, _, text = one.partition("=")
        if not name or not text or name in options:
            raise UsageError(f"--set {one}: expected NAME=VALUE, NAME a setting of the method, like shrink=0.01")
        found[name] = _number(text)
    return found


def _number(text: str) -> int | float | str:
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text
