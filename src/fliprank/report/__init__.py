"""Pictures of what was found. Needs the extra `report` (Altair and vl-convert): pip install 'fliprank[report]'.

`plots/` has the plots by name; `drawing.py` is the look that they share, `saving.py` writes them to files.
"""
