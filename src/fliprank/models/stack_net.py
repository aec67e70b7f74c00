"""The net on top of a stack: f = b3 + sum_j w32_j tanh(b2_j + sum_k w21_jk x_k), x the outputs of parts, then features.

The same net as `Network` (nested ranker, section 2.1), but for where its inputs come from; it also says how its value
changes with the parts' outputs, so that their parameters are trained with it (Taylor et al. 2006, equation 15).
Rows are read a block at a time; a row's score does not depend on its place.
"""

from __future__ import annotations

import numpy as np

from fliprank.arrays import Floats, Matrix
from fliprank.kernels import kernel, parallel_kernel, prange
from fliprank.models.network import tanh
from fliprank.models.standardised import TILE, add_rows, chunks_of, load_tile

__all__ = ["net_pull", "net_scores"]


def net_scores(outputs: Floats, features: Matrix, mean: Floats, w21: Floats, w32: Floats, b3: float) -> Floats:
    """The net's value for each row; `outputs` has a line a part, w21 a line a node, its last column being b2."""
    out = np.empty(outputs.shape[1])
    _score_chunks(outputs, features, mean, w21, w32, float(b3), chunks_of(len(out)), out)
    return out


def net_pull(
    outputs: Floats, features: Matrix, mean: Floats, w21: Floats, w32: Floats, dscores: Floats
) -> tuple[Floats, Floats, Floats]:
    """The gradient by w21 (with b2), by w32, and by each part's outputs."""
    chunks, (nodes, inputs) = chunks_of(len(dscores)), w21.shape
    parts, by_output = np.zeros((chunks, nodes, inputs + 1)), np.empty(outputs.shape)
    _pull_chunks(outputs, features, mean, w21, w32, dscores, parts, by_output)
    total = parts.sum(axis=0)
    return total[:, :inputs], total[:, inputs], by_output


@kernel
def _nodes(
    outputs: Floats, features: Matrix, mean: Floats, w21: Floats, low: int, high: int, tile: Floats, nodes: Floats
) -> None:
    """Set `nodes` to the values of the hidden nodes for rows low:high; the last row of the tile is 1."""
    count = len(outputs)
    for p in range(count):
        for row in range(low, high):
            tile[p, row - low] = outputs[p, row] - mean[p]
    load_tile(features, mean[count:], low, high, tile[count:])
    nodes[:] = 0.0
    for j in range(len(nodes)):
        add_rows(w21[j], tile, nodes[j])
    tanh(nodes.reshape(-1))


@kernel
def _score_rows(
    outputs: Floats,
    features: Matrix,
    mean: Floats,
    w21: Floats,
    w32: Floats,
    b3: float,
    start: int,
    stop: int,
    out: Floats,
) -> None:
    tile, nodes = np.ones((w21.shape[1], TILE)), np.empty((len(w21), TILE))
    for low in range(start, stop, TILE):
        high = min(low + TILE, stop)
        _nodes(outputs, features, mean, w21, low, high, tile, nodes)
        for row in range(low, high):
            out[row] = b3
        add_rows(w32, nodes, out[low:high])


@parallel_kernel
def _score_chunks(
    outputs: Floats, features: Matrix, mean: Floats, w21: Floats, w32: Floats, b3: float, chunks: int, out: Floats
) -> None:
    rows = len(out)
    for c in prange(chunks):
        _score_rows(outputs, features, mean, w21, w32, b3, rows * c // chunks, rows * (c + 1) // chunks, out)


@kernel
def _pull_rows(
    outputs: Floats,
    features: Matrix,
    mean: Floats,
    w21: Floats,
    w32: Floats,
    dscores: Floats,
    start: int,
    stop: int,
    total: Floats,
    by_output: Floats,
) -> None:
    """Add to `total` the gradient of these rows by w21, b2 and w32; set that by each part's outputs."""
    tile, nodes = np.ones((w21.shape[1], TILE)), np.empty((len(w21), TILE))
    for low in range(start, stop, TILE):
        size = min(low + TILE, stop) - low
        _nodes(outputs, features, mean, w21, low, low + size, tile, nodes)
        by_output[:, low : low + size] = 0.0
        for j in range(len(w32)):
            node, through = nodes[j], 0.0
            for r in range(size):  # the node's value becomes the gradient by what it takes in
                given, value = dscores[low + r], node[r]
                through += given * value
                node[r] = given * w32[j] * (1.0 - value * value)
            total[j, -1] += through
            for k in range(w21.shape[1]):
                line, product = tile[k], 0.0
                for r in range(size):
                    product += node[r] * line[r]
                total[j, k] += product
            for p in range(len(outputs)):
                for r in range(size):
                    by_output[p, low + r] += node[r] * w21[j, p]


@parallel_kernel
def _pull_chunks(
    outputs: Floats,
    features: Matrix,
    mean: Floats,
    w21: Floats,
    w32: Floats,
    dscores: Floats,
    parts: Floats,
    by_output: Floats,
) -> None:
    rows, chunks = len(dscores), len(parts)
    for c in prange(chunks):
        start, stop = rows * c // chunks, rows * (c + 1) // chunks
        _pull_rows(outputs, features, mean, w21, w32, dscores, start, stop, parts[c], by_output)
