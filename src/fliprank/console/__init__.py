"""What a person sees on a terminal, and what a program reads: tables, notes, a sign of life while work goes on.

output     where results go: a terminal, a pipe, `--quiet`, `--json`
fitting    tables that are never cropped: fewer columns, short names, several blocks
tables     the tables of an evaluation
progress   a bar with the time that is left; lines at a human pace where there is no terminal
"""

from fliprank.console.output import answer, output, result, show, written
from fliprank.console.progress import counting, fit_progress, working
from fliprank.console.tables import comparison_tables, explanation, mean_table, new_table, plain, query_table

__all__ = [
    "answer",
    "comparison_tables",
    "counting",
    "explanation",
    "fit_progress",
    "mean_table",
    "new_table",
    "output",
    "plain",
    "query_table",
    "result",
    "show",
    "working",
    "written",
]
