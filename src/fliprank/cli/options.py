"""Groups of options that several commands share, each a dataclass; `with_options` spreads them into a command's own.

>>> @dataclass(frozen=True)
... class Size:
...     width: Annotated[int, typer.Option(help="In columns.")] = 80
>>> @with_options
... def show(size: Size, name: str = "x") -> str:
...     return f"{name} {size.width}"
>>> import inspect
>>> list(inspect.signature(show).parameters), show(width=40)
(['width', 'name'], 'x 40')
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from dataclasses import MISSING, dataclass, fields, is_dataclass, replace
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar, get_type_hints

import typer

from fliprank.cli.documents import Anchors, Docs, Fields, IndexOptions, Links, NFeatures, Stemmer, Stopwords
from fliprank.cli.help_pages import ExampleCommand
from fliprank.defaults import DEFAULT_MEASURE
from fliprank.errors import UsageError

if TYPE_CHECKING:
    from fliprank.data.candidates import Candidates
    from fliprank.data.trec import Run
    from fliprank.experiment.parameter_settings import ParameterSettings
    from fliprank.experiment.task import Task
    from fliprank.models import Model
    from fliprank.text.index import Searchable

__all__ = [
    "FitOptions",
    "HybridOptions",
    "ListingCommand",
    "ModelOptions",
    "ParameterOptions",
    "Source",
    "method_settings",
    "with_options",
]

R = TypeVar("R")

RESERVED = ("seed", "method", "objective", "measure", "restarts")
"""Settings of a method that have options of their own."""


def with_options(command: Callable[..., R]) -> Callable[..., R]:
    """The command with each parameter that is a dataclass replaced by the fields of that dataclass."""
    hints = get_type_hints(command, include_extras=True)
    groups: dict[str, type[Any]] = {
        n: hint for n, hint in hints.items() if isinstance(hint, type) and is_dataclass(hint)
    }
    parameters: list[inspect.Parameter] = []
    for name, parameter in inspect.signature(command).parameters.items():
        if name not in groups:
            parameters.append(parameter.replace(annotation=hints[name], kind=inspect.Parameter.KEYWORD_ONLY))
            continue
        own = get_type_hints(groups[name], include_extras=True)
        for field in fields(groups[name]):
            default = inspect.Parameter.empty if field.default is MISSING else field.default
            kind = inspect.Parameter.KEYWORD_ONLY
            parameters.append(inspect.Parameter(field.name, kind, default=default, annotation=own[field.name]))

    @wraps(command)
    def spread(**given: Any) -> R:
        made = {
            name: group(**{f.name: given.pop(f.name) for f in fields(group) if f.name in given})
            for name, group in groups.items()
        }
        return command(**made, **given)

    spread.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    spread.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return spread


class ListingCommand(ExampleCommand):
    """A command whose help ends with the models, methods, objectives and measures that are registered."""

    def format_epilog(self, ctx: Any, formatter: Any) -> None:
        super().format_epilog(ctx, formatter)
        for title, names in _listed():
            with formatter.section(title):
                formatter.write_text(names)


def _listed() -> Iterator[tuple[str, str]]:
    from fliprank import measures, objectives
    from fliprank.models.registry import model_names
    from fliprank.optimize.methods import METHODS

    yield "Models", ", ".join(model_names())
    yield "Methods that descend an objective", ", ".join(name for name, m in METHODS.items() if not m.direct)
    yield "Methods that climb the measure itself", ", ".join(name for name, m in METHODS.items() if m.direct)
    yield "Objectives, with parameters in brackets", ", ".join(objectives.REGISTRY)
    yield "Measures, with parameters in brackets", ", ".join(sorted({m.name for m in measures.REGISTRY.values()}))


@dataclass(frozen=True)
class Source:
    """Where rows come from: files of rows, or documents with queries and judgements."""

    rows: Annotated[
        Path | None, typer.Argument(help="Training rows: LETOR, Parquet or term statistics; `train` takes shards, too.")
    ] = None
    valid: Annotated[
        str | None, typer.Option(help="Validation queries, which choose epoch and settings: rows, qrels, or a split.")
    ] = None
    test: Annotated[
        str | None, typer.Option(help="Test queries, looked at when all is chosen: rows, qrels, or a split of --beir.")
    ] = None
    docs: Docs = None
    queries: Annotated[
        Path | None,
        typer.Option(
            help="Queries: JSON lines (_id, text), id, tab, text, or TREC topics; or those of a CSV as --qrels."
        ),
    ] = None
    qrels: Annotated[Path | None, typer.Option(help="Judgements: TREC or BEIR qrels, or CSV: query,docid,rating.")] = (
        None
    )
    beir: Annotated[Path | None, typer.Option(help="Instead of these three: a folder in BEIR's layout.")] = None
    split: Annotated[
        str | None, typer.Option(help="With --beir: the judgements to fit to; train, or the only ones, by default.")
    ] = None
    fields: Fields = None
    anchors: Anchors = None
    links: Links = None
    stemmer: Stemmer = "english"
    stopwords: Stopwords = None
    depth: Annotated[
        int | None,
        typer.Option(
            min=1, help="With documents: how many per query, beside the judged; 1000, with --run 100 of each list."
        ),
    ] = None
    n_features: NFeatures = None

    def task(
        self,
        folder: Path,
        runs: dict[str, Run] | None = None,
        read: Callable[..., Task] | None = None,
        build: Callable[[Path, IndexOptions], Searchable] | None = None,
    ) -> Task:
        """The task, read and checked; an index of documents is kept in `folder`. `runs` are fused with text.

        `read` reads rows, if it is given, in place of `task_of_rows`; `build` indexes documents in place of
        `open_index`.
        """
        index = IndexOptions(self.fields, self.stemmer, self.stopwords, self.anchors, self.links)
        if self.rows is not None:
            if self.docs or self.queries or self.qrels or self.beir:
                raise UsageError("a file of rows stands alone: no --docs, --queries, --qrels or --beir beside it")
            if index != IndexOptions():
                raise UsageError("how to index goes with --docs: a file of rows has its fields and terms")
            if runs is not None:
                raise UsageError("--run goes with --docs, --queries and --qrels: a file of rows has no index")
            from fliprank.experiment.task import task_of_rows

            task = (read or task_of_rows)(self.rows, self.valid, self.test, self.n_features)
            return task.read_from(rows=self.rows, test=self.test)
        return self._from_documents(index, folder, runs, build)

    def deep(self, runs: object = None) -> int:
        """How many documents per query."""
        return self.depth or (1000 if runs is None else 100)

    def _from_documents(
        self,
        options: IndexOptions,
        folder: Path,
        runs: dict[str, Run] | None,
        build: Callable[[Path, IndexOptions], Searchable] | None,
    ) -> Task:
        from fliprank import console
        from fliprank.data.beir import find_split, split_to_fit
        from fliprank.experiment.task import open_index, read_judged_queries, task_of_judged_queries

        docs, queries, qrels = self.docs, self.queries, self.qrels
        notes: list[str] = []
        held_out: list[Path | None] = [None if name is None else Path(name) for name in (self.valid, self.test)]
        if self.beir is not None:
            if docs or queries or qrels:
                raise UsageError("--beir stands for --docs, --queries and --qrels: give one or the others")
            split = self.split or split_to_fit(self.beir, (self.valid, self.test))
            notes += [] if split in (self.split, "train") else [f"fitted to the split {split}, the only one"]
            docs, queries, qrels = self.beir, self.beir, find_split(self.beir, split)
            held_out = [None if name is None else find_split(self.beir, name) for name in (self.valid, self.test)]
        if docs is None or qrels is None:
            raise UsageError("give a file of rows, or --docs, --queries and --qrels, or --beir")
        analyzer, links = options.analyzer(), {"anchors": options.anchors, "links": options.links}
        judged = read_judged_queries(queries, qrels, *held_out)
        index: Searchable
        with console.counting("indexing") as progress:
            if build is not None:
                index = build(docs, options)
            else:
                index = open_index(docs, folder, options.wanted, analyzer, progress, **links)
        task = task_of_judged_queries(index, judged, self.deep(runs), runs)
        task = task.read_from(docs=docs, queries=queries, qrels=qrels, test=held_out[1])
        return replace(task, notes=(*notes, *task.notes))


@dataclass(frozen=True)
class ModelOptions:
    """Which model."""

    model: Annotated[str | None, typer.Option(help="What to fit: see the list of models below.")] = None
    hidden: Annotated[int | None, typer.Option(min=0, help="Hidden nodes of a network or stack.")] = None
    stages: Annotated[str | None, typer.Option(help="Of a cascade: how many documents each stage sees.")] = None
    stage_model: Annotated[
        str | None, typer.Option(help="Of a cascade, by stage: linear, network:HIDDEN, trees:LEAVES, bm25f, ...")
    ] = None
    stage_features: Annotated[
        str | None, typer.Option(help="Of a cascade: names by stage, as 'bm25*,clicks;*;*'; all by default.")
    ] = None

    def make(self, rows: Candidates, default: str, **others: Any) -> Model:
        """The model for these rows; `others` are settings that other options give."""
        from fliprank import console
        from fliprank.experiment.training import check_name
        from fliprank.models.registry import make_model, stack_notes

        check_name(self.model or default, rows)
        if self.model == "stack":
            console.show(*stack_notes(rows))
        given = {"hidden": self.hidden, "stages": self.stages, "stage_model": self.stage_model}
        return make_model(self.model or default, rows, **given, stage_features=self.stage_features, **others)


@dataclass(frozen=True)
class HybridOptions:
    """The lists that `--model hybrid` fuses with text, and how."""

    run: Annotated[
        list[str] | None,
        typer.Option(help="With --model hybrid: a list to fuse with text, FILE or NAME=FILE; repeatable."),
    ] = None
    engine: Annotated[
        str | None,
        typer.Option(help="Fit what this engine computes (sqlite, ...), or with --model hybrid what it fuses by."),
    ] = None
    engine_settings: Annotated[
        list[str] | None,
        typer.Option("--engine-set", metavar="NAME=VALUE", help="A setting of the engine, as normalise=l2."),
    ] = None

    def read(self, model: str | None) -> dict[str, Run] | None:
        """The lists by name; None of other models, which have none."""
        if model != "hybrid":
            for name, given in (("run", self.run), ("engine-set", self.engine_settings)):
                if given:
                    raise UsageError(f"--{name} is for --model hybrid, not for {model or 'the default model'}")
            return None
        if not self.run:
            raise UsageError("--model hybrid fuses text with other lists: give at least one by --run, as dense.run")
        from fliprank.data.fusion_rows import named_runs
        from fliprank.models import Fusion, Hybrid

        Hybrid(None, Fusion(self.engine or "plain", **method_settings(self.engine_settings, "engine-set")))
        return named_runs(named_files(self.run))

    def sources(self) -> dict[str, str]:
        """The files of the lists, for result.json."""
        return {f"run.{name}": str(path.resolve()) for name, path in named_files(self.run or []).items()}

    def settings(self, window: int) -> dict[str, Any]:
        """Settings of the model."""
        chosen = method_settings(self.engine_settings, "engine-set")
        return {"engine": self.engine, "engine_settings": chosen, "window": window}


def named_files(given: list[str]) -> dict[str, Path]:
    """What `--run` says: NAME=FILE, or a file that gives the list its name."""
    out = dict[str, Path]()
    for one in given:
        name, _, file = one.partition("=")
        path = Path(file or name)
        called = name if file else path.name.split(".")[0]
        if called in out:
            raise UsageError(f"--run {one}: a list is called {called!r} already; name it, as in dense={path}")
        out[called] = path
    return out


@dataclass(frozen=True)
class ParameterOptions:
    """What a person says about parameters."""

    start: Annotated[list[str] | None, typer.Option(help="name=value: the default to start from.")] = None
    bounds: Annotated[list[str] | None, typer.Option(help="name=low:high.")] = None
    fix: Annotated[list[str] | None, typer.Option(help="name, or name=value: not fitted.")] = None
    free: Annotated[
        list[str] | None, typer.Option(help="name, or a (all that end in .a): fitted, though fixed by default.")
    ] = None
    share: Annotated[list[str] | None, typer.Option(help="b (all that end in .b), or b=title.b,body.b.")] = None
    parameters: Annotated[Path | None, typer.Option(help="A TOML file with start, bounds, fix, share.")] = None

    def read(self) -> ParameterSettings:
        """The settings, those of the command line over those of the file."""
        from fliprank.experiment.parameter_settings import read_settings

        given = {name: getattr(self, name) or () for name in ("start", "bounds", "fix", "free", "share")}
        return read_settings(self.parameters, **given)


@dataclass(frozen=True)
class FitOptions:
    """How to fit, by what to choose, and what to report."""

    method: Annotated[str, typer.Option(help="How: auto, or one of the methods listed below.")] = "auto"
    objective: Annotated[str | None, typer.Option(help="The objective to descend: see the list below.")] = None
    settings: Annotated[
        list[str] | None, typer.Option("--set", metavar="NAME=VALUE", help="A setting of the method.")
    ] = None
    epochs: Annotated[int | None, typer.Option(min=1, help="At most so many; the method's own by default.")] = None
    restarts: Annotated[int | None, typer.Option(min=1, help="Random starts of each setting.")] = None
    select: Annotated[str | None, typer.Option(help="The measure to choose by; the first --measure by default.")] = None
    measure: Annotated[list[str] | None, typer.Option("-m", "--measure", help="A measure to report; repeatable.")] = (
        None
    )
    seed: Annotated[int, typer.Option(min=0, help="Random seed.")] = 0

    @property
    def chosen_by(self) -> str:
        """The measure that settings and epochs are chosen by."""
        return self.select or (self.measure[0] if self.measure else DEFAULT_MEASURE)

    @property
    def reported(self) -> list[str]:
        """The measures to report."""
        return list(self.measure) if self.measure else ["AP", "RR"]

    def of_method(self) -> dict[str, Any]:
        """The settings of the method: whole numbers, numbers, or else words."""
        return ({} if self.epochs is None else {"epochs": self.epochs}) | method_settings(self.settings)


def method_settings(given: list[str] | None, option: str = "set") -> dict[str, Any]:
    """What `--set NAME=VALUE` says, as often as it is given."""
    found: dict[str, Any] = {}
    for one in given or []:
        name, _, text = one.partition("=")
        if not name or not text or (option == "set" and name in RESERVED):
            like = "of the method, like shrink=0.01" if option == "set" else "of the engine, like normalise=l2"
            raise UsageError(f"--{option} {one}: expected NAME=VALUE, NAME a setting {like}")
        found[name] = _value(text)
    return found


def _value(text: str) -> int | float | bool | str:
    if text in ("true", "false"):
        return text == "true"
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text
