"""fliprank inside other libraries: one file each, which imports its library and nothing of the others."""
