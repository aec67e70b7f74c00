"""Tests run two processes side by side: one thread each, unless a test asks for more."""

import numba

numba.set_num_threads(1)
