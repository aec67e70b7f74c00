"""fliprank: set the parameters of search ranking functions from relevance judgements, flip by flip.

    import fliprank as fr

    result = fr.evaluate("qrels.txt", ["bm25.run", "tuned.run"], ["nDCG@10", "AP"])
    result.means(), result.compare()

Names load on first use, so that importing the package costs nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fliprank import landscape as landscape
    from fliprank.data.beir import read_beir as read_beir
    from fliprank.data.candidates import Candidates as Candidates
    from fliprank.data.candidates import concat as concat
    from fliprank.data.candidates import group_rows as group_rows
    from fliprank.data.convert import convert as convert
    from fliprank.data.file_rows import FileRows as FileRows
    from fliprank.data.fusion_rows import fused_run as fused_run
    from fliprank.data.fusion_rows import fusion_rows as fusion_rows
    from fliprank.data.generate import WebModel as WebModel
    from fliprank.data.generate import generate as generate
    from fliprank.data.generate import generate_blocks as generate_blocks
    from fliprank.data.letor import read_letor as read_letor
    from fliprank.data.letor import write_letor as write_letor
    from fliprank.data.open_rows import open_rows as open_rows
    from fliprank.data.parquet import read_parquet as read_parquet
    from fliprank.data.parquet import write_parquet as write_parquet
    from fliprank.data.readers import read_candidates as read_candidates
    from fliprank.data.subsample import subsample as subsample
    from fliprank.data.term_statistics_jsonl import read_statistics as read_statistics
    from fliprank.data.term_statistics_jsonl import write_statistics as write_statistics
    from fliprank.data.trec import Qrels as Qrels
    from fliprank.data.trec import Run as Run
    from fliprank.data.trec import judge as judge
    from fliprank.data.trec import read_qrels as read_qrels
    from fliprank.data.trec import read_run as read_run
    from fliprank.data.trec import write_qrels as write_qrels
    from fliprank.data.trec import write_run as write_run
    from fliprank.distributed.on import on as on
    from fliprank.engines.verify import verify as verify
    from fliprank.errors import FliprankError as FliprankError
    from fliprank.errors import InputError as InputError
    from fliprank.errors import UsageError as UsageError
    from fliprank.experiment.adaptive_fusing import with_query_traits as with_query_traits
    from fliprank.experiment.cutoffs import choose_cutoffs as choose_cutoffs
    from fliprank.experiment.diff import Diff as Diff
    from fliprank.experiment.diff import diff as diff
    from fliprank.experiment.evaluation import Evaluation as Evaluation
    from fliprank.experiment.evaluation import compare as compare
    from fliprank.experiment.evaluation import evaluate as evaluate
    from fliprank.experiment.fusing import Fused as Fused
    from fliprank.experiment.fusing import fuse as fuse
    from fliprank.experiment.importance import Importance as Importance
    from fliprank.experiment.importance import importance as importance
    from fliprank.experiment.learning_curve import Ranker as Ranker
    from fliprank.experiment.learning_curve import learning_curve as learning_curve
    from fliprank.experiment.precision_recall import PrecisionRecall as PrecisionRecall
    from fliprank.experiment.precision_recall import precision_recall as precision_recall
    from fliprank.experiment.splits import folds as folds
    from fliprank.experiment.telescope import telescope as telescope
    from fliprank.experiment.training import train as train
    from fliprank.experiment.tuning import tune as tune
    from fliprank.export.folder import export_model as export_model
    from fliprank.export.functions import engine_model as engine_model
    from fliprank.landscape import find_flips as find_flips
    from fliprank.landscape import score_trajectory as score_trajectory
    from fliprank.measures import AP as AP
    from fliprank.measures import DCG as DCG
    from fliprank.measures import ERR as ERR
    from fliprank.measures import ESL as ESL
    from fliprank.measures import GM as GM
    from fliprank.measures import GMAP as GMAP
    from fliprank.measures import RBP as RBP
    from fliprank.measures import RR as RR
    from fliprank.measures import Bpref as Bpref
    from fliprank.measures import CorrectPairs as CorrectPairs
    from fliprank.measures import Judged as Judged
    from fliprank.measures import Measure as Measure
    from fliprank.measures import P as P
    from fliprank.measures import R as R
    from fliprank.measures import Rprec as Rprec
    from fliprank.measures import SetF as SetF
    from fliprank.measures import SetP as SetP
    from fliprank.measures import SetR as SetR
    from fliprank.measures import SetU as SetU
    from fliprank.measures import Success as Success
    from fliprank.measures import nDCG as nDCG
    from fliprank.measures import parse_measure as parse_measure
    from fliprank.models import BM25 as BM25
    from fliprank.models import BM25F as BM25F
    from fliprank.models import AdaptiveFusion as AdaptiveFusion
    from fliprank.models import AllFeatures as AllFeatures
    from fliprank.models import Blend as Blend
    from fliprank.models import BM25Sum as BM25Sum
    from fliprank.models import Cascade as Cascade
    from fliprank.models import Dirichlet as Dirichlet
    from fliprank.models import Feature as Feature
    from fliprank.models import FeatureSubset as FeatureSubset
    from fliprank.models import Fusion as Fusion
    from fliprank.models import Hybrid as Hybrid
    from fliprank.models import JelinekMercer as JelinekMercer
    from fliprank.models import Linear as Linear
    from fliprank.models import Model as Model
    from fliprank.models import Network as Network
    from fliprank.models import Parameters as Parameters
    from fliprank.models import Stack as Stack
    from fliprank.models import Trees as Trees
    from fliprank.models import TwoStageLM as TwoStageLM
    from fliprank.models import load_model as load_model
    from fliprank.objectives import MSE as MSE
    from fliprank.objectives import LambdaRank as LambdaRank
    from fliprank.objectives import Logistic as Logistic
    from fliprank.objectives import RankNet as RankNet
    from fliprank.objectives import SoftAP as SoftAP
    from fliprank.objectives import SoftNDCG as SoftNDCG
    from fliprank.objectives import SoftP as SoftP
    from fliprank.objectives import SoftRank as SoftRank
    from fliprank.objectives import SoftRecall as SoftRecall
    from fliprank.objectives import SoftRR as SoftRR
    from fliprank.objectives import parse_objective as parse_objective
    from fliprank.objectives import rank_distribution as rank_distribution
    from fliprank.optimize.fit import Fit as Fit
    from fliprank.optimize.line import line_search as line_search
    from fliprank.optimize.methods import Method as Method
    from fliprank.report import plots as plots
    from fliprank.text.analysis import Analyzer as Analyzer
    from fliprank.text.features.features import feature_names as feature_names
    from fliprank.text.features.features import feature_rows as feature_rows
    from fliprank.text.features.features import features as features
    from fliprank.text.index import Index as Index

__version__ = "0.1.0"

_HOMES = {
    "fliprank.data.beir": ("read_beir",),
    "fliprank.data.candidates": ("Candidates", "concat", "group_rows"),
    "fliprank.data.convert": ("convert",),
    "fliprank.data.file_rows": ("FileRows",),
    "fliprank.data.open_rows": ("open_rows",),
    "fliprank.data.fusion_rows": ("fused_run", "fusion_rows"),
    "fliprank.data.generate": ("WebModel", "generate", "generate_blocks"),
    "fliprank.data.letor": ("read_letor", "write_letor"),
    "fliprank.data.parquet": ("read_parquet", "write_parquet"),
    "fliprank.data.term_statistics_jsonl": ("read_statistics", "write_statistics"),
    "fliprank.data.trec": ("Qrels", "Run", "judge", "read_qrels", "read_run", "write_qrels", "write_run"),
    "fliprank.data.subsample": ("subsample",),
    "fliprank.data.readers": ("read_candidates",),
    "fliprank.distributed.on": ("on",),
    "fliprank.errors": ("FliprankError", "InputError", "UsageError"),
    "fliprank.experiment.diff": ("Diff", "diff"),
    "fliprank.experiment.adaptive_fusing": ("with_query_traits",),
    "fliprank.experiment.fusing": ("Fused", "fuse"),
    "fliprank.experiment.evaluation": ("Evaluation", "compare", "evaluate"),
    "fliprank.experiment.cutoffs": ("choose_cutoffs",),
    "fliprank.experiment.importance": ("Importance", "importance"),
    "fliprank.experiment.learning_curve": ("Ranker", "learning_curve"),
    "fliprank.experiment.precision_recall": ("PrecisionRecall", "precision_recall"),
    "fliprank.experiment.splits": ("folds",),
    "fliprank.experiment.telescope": ("telescope",),
    "fliprank.experiment.training": ("train",),
    "fliprank.experiment.tuning": ("tune",),
    "fliprank.engines.verify": ("verify",),
    "fliprank.export.folder": ("export_model",),
    "fliprank.export.functions": ("engine_model",),
    "fliprank.landscape": ("find_flips", "score_trajectory"),
    "fliprank.measures": (
        *("AP", "Bpref", "CorrectPairs", "DCG", "ERR", "ESL", "GM", "GMAP", "Judged", "Measure", "P", "R", "RBP", "RR"),
        *("Rprec", "SetF", "SetP", "SetR", "SetU", "Success", "nDCG", "parse_measure"),
    ),
    "fliprank.models": (
        "BM25",
        "BM25F",
        "BM25Sum",
        "Cascade",
        "FeatureSubset",
        "AdaptiveFusion",
        "Fusion",
        "Hybrid",
        "Dirichlet",
        "Feature",
        "AllFeatures",
        "Blend",
        "JelinekMercer",
        "Linear",
        "Model",
        "Network",
        "Parameters",
        "Stack",
        "Trees",
        "TwoStageLM",
        "load_model",
    ),
    "fliprank.objectives": (
        "LambdaRank",
        "Logistic",
        "MSE",
        "RankNet",
        "SoftAP",
        "SoftNDCG",
        "SoftP",
        "SoftRR",
        "SoftRank",
        "SoftRecall",
        "parse_objective",
        "rank_distribution",
    ),
    "fliprank.optimize.fit": ("Fit",),
    "fliprank.optimize.line": ("line_search",),
    "fliprank.optimize.methods": ("Method",),
    "fliprank.text.analysis": ("Analyzer",),
    "fliprank.text.features.features": ("feature_names", "feature_rows", "features"),
    "fliprank.text.index": ("Index",),
}
_MODULES = {"landscape": "fliprank.landscape", "plots": "fliprank.report.plots"}
_HOME = {name: home for home, names in _HOMES.items() for name in names}

__all__ = sorted(_HOME)


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return import_module(_MODULES[name])
    if name not in _HOME:
        raise AttributeError(f"module 'fliprank' has no attribute {name!r}")
    return getattr(import_module(_HOME[name]), name)


def __dir__() -> list[str]:
    return [*__all__, *_MODULES, "__version__"]
