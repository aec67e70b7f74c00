"""Every method on workers, and workers that are killed in the middle of one (`make test-cluster`)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from clusters_here import Doomed, fitted, local_client, model_for, remote, some_rows, split

from fliprank.distributed.cluster import Cluster
from fliprank.optimize.methods import METHODS


@pytest.mark.parametrize("name", sorted(METHODS))
def test_every_method_gives_on_workers_what_it_gives_here(client: Any, name: str) -> None:
    some, method = some_rows(12), METHODS[name]
    assert some.features is not None
    rows = replace(some, features=some.features[:, :2], feature_names=())  # a full grid takes three parameters
    parts, model = split(rows, [5]), model_for(rows)
    known = method.__dataclass_fields__
    settings = {name: few for name, few in (("epochs", 1), ("steps", 3)) if name in known}
    objective = None if method.direct else "ranknet"
    far = fitted(name, objective, remote(Cluster(client), parts), model, **settings)
    here = fitted(name, objective, parts, model, **settings)
    assert far[0] == here[0] or (np.isnan(far[0]) and np.isnan(here[0]))
    np.testing.assert_array_equal(far[1].params.values, here[1].params.values)


@pytest.mark.parametrize("after", [5, 23, 60])
@pytest.mark.parametrize(
    ("method", "objective", "hidden"),
    [("lbfgs", "softndcg(sigma=0.3)", 0), ("lbfgs", "ranknet", 4), ("adam", "lambdarank", 3), ("exact", None, 0)],
)
def test_a_fit_ends_with_the_same_answer_when_a_worker_is_killed(
    client: Any, method: str, objective: str | None, hidden: int, after: int
) -> None:
    rows = some_rows(60)
    parts, model = split(rows, [10, 20, 33, 51]), model_for(rows, hidden)
    here = fitted(method, objective, parts, model, epochs=30 if method != "exact" else 2)
    cluster = Doomed(client, after)
    far = fitted(method, objective, remote(cluster, parts), model, epochs=30 if method != "exact" else 2)
    assert any("is gone" in text for text in cluster.told)
    assert far[0] == here[0]
    np.testing.assert_array_equal(far[1].params.values, here[1].params.values)


@pytest.mark.parametrize("workers", [1, 3])
def test_the_number_of_workers_changes_nothing(workers: int) -> None:
    rows = some_rows(60)
    parts, model = split(rows, [10, 20, 33, 51]), model_for(rows)
    here = fitted("lbfgs", "ranknet", parts, model)
    with local_client(workers) as client:
        far = fitted("lbfgs", "ranknet", remote(Cluster(client), parts), model)
    np.testing.assert_array_equal(far[1].params.values, here[1].params.values)
