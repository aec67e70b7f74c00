"""What commands and functions use unless they are told otherwise. One home, and nothing heavy to import."""

__all__ = ["DEFAULT_MEASURE", "DEFAULT_OBJECTIVE", "REPORTED_MEASURES"]

DEFAULT_MEASURE = "nDCG(dcg='exp-log2')@10"
DEFAULT_OBJECTIVE = "lambdarank@10"
REPORTED_MEASURES = (DEFAULT_MEASURE, "AP", "RR")
