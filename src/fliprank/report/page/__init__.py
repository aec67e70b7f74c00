"""report.html: one self-contained file that shows a result to people, opened without any network.

A page is a list of sections, each headed by the one sentence to conclude from it (`section.py`). One module per section
makes its content, plain JSON, of a result; the script of the same name in `assets/` draws it. `render.py` puts content,
style and scripts into one file, under a Content-Security-Policy that allows nothing else.
"""

from __future__ import annotations

from fliprank.report.page.findings import findings_page
from fliprank.report.page.fusing import fusing_page
from fliprank.report.page.judging import evaluation_page
from fliprank.report.page.render import render, write_page
from fliprank.report.page.section import Documents, Page, Section
from fliprank.report.page.training import training_page
from fliprank.report.page.tuning import tuning_page

__all__ = [
    "Documents",
    "Page",
    "Section",
    "evaluation_page",
    "findings_page",
    "fusing_page",
    "render",
    "training_page",
    "tuning_page",
    "write_page",
]
