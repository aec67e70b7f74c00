"""Pictures of what was found. Needs the extra `report` (Altair and vl-convert): pip install 'fliprank[report]'."""
