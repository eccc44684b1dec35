"""The rounds on the workers of a Dask cluster: XGBoost's trees, and sums over all machines.

The features stay where they are. The attribute, the targets and the weights of all rows, a few
numbers each, come to the client, which fits the kernel and judges the predictions as for local
rows. Every worker runs the rounds on its own rows. The histograms of the trees and, once a round,
the coordinates of the predictions are added up over the workers by XGBoost's collective.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from threading import Thread
from typing import Any

import numpy as np
import scipy.sparse as sp

from .._validation import (
    _safe_indexing,
    check_attribute,
    check_sample_weight,
    column_positions,
    drop_columns,
)
from ..constraints import FittedConstraint, joint_columns
from ..kernels import FittedKernel
from ._backends import Settings, XGBoost, check_features
from ._parameters import refusals_named
from ._training import Ascent, Member, Rows, Trained, train

# Seconds between two looks at whether all workers are alive.
_INTERVAL = 1.0


def is_dask(X: Any) -> bool:
    """Tell whether X is a collection of Dask."""
    return type(X).__module__.partition(".")[0] == "dask"


def _first_row(X: Any) -> Any:
    """Return the first row of a collection, in the type of its blocks."""
    return X.head(1, npartitions=-1) if hasattr(X, "columns") else X[:1].compute()


def _local_values(values: Any) -> Any:
    """Return a collection, or what is none, as local values."""
    return values.compute() if is_dask(values) else values


def _local_columns(X: Any, positions: Sequence[int]) -> Any:
    """Return columns of X as local values."""
    if hasattr(X, "columns"):
        return X[[X.columns[position] for position in positions]].compute()
    return X[:, list(positions)].compute()


def _blocks(X: Any) -> list[Any]:
    """Return the blocks of rows of a collection, each a delayed object."""
    if not hasattr(X, "columns"):
        X = X.rechunk({1: -1})
    return list(np.ravel(X.to_delayed()))


def lazily(method: Callable[[Any], np.ndarray], X: Any) -> Any:
    """Return the responses of a method for the rows of a collection, as a Dask array."""
    import dask
    import dask.array as da

    blocks = _blocks(X)
    lengths = [np.nan] * len(blocks) if hasattr(X, "columns") else X.chunks[0]
    known, respond = method(_first_row(X)), dask.delayed(method)
    return da.concatenate(
        [
            da.from_delayed(respond(block), (length, *known.shape[1:]), dtype=known.dtype)
            for block, length in zip(blocks, lengths, strict=True)
        ]
    )


def fit_on_cluster(
    estimator: Any, X: Any, y: Any, sensitive_features: Any, sample_weight: Any, **refused: Any
) -> Any:
    """Fit on the rows of a Dask collection; further keywords of `fit` are refused."""
    refused |= {"cv": estimator.cv, "confidence": estimator.confidence}
    given = [name for name, value in refused.items() if value is not None]
    if given or estimator.backend != "xgboost":
        raise ValueError(
            "Dask collections are fitted with backend='xgboost', without "
            f"cv, confidence, groups and eval_set; got backend={estimator.backend!r} and {given}."
        )
    cluster, sample = Cluster(X), _first_row(X)
    n_rows, sample_weight = sum(cluster.lengths), _local_values(sample_weight)
    y = estimator._check_targets(_local_values(y), sample_weight)
    if len(y) != n_rows:
        raise ValueError(f"X has {n_rows} rows, but y has {len(y)}.")
    weight = check_sample_weight(sample_weight, n_rows)
    attribute = _local_values(sensitive_features)
    if attribute is None and estimator.sensitive_columns is not None:
        own = column_positions(sample, estimator.sensitive_columns)
        attribute = check_attribute(_local_columns(X, own), n_rows, kind="mixed")
    else:
        attribute = estimator._check_attribute(sample, attribute, n_rows, reset=True)
    estimator._record_columns(sample)
    _check_params(estimator, sample)
    counted = np.ones(n_rows, dtype=bool) if weight is None else weight > 0
    own_weight = None if weight is None else weight[counted]
    constraint = estimator._fit_constraint(attribute[counted], y[counted], own_weight)
    rows = estimator._rows(constraint, y[counted], own_weight)
    columns = constraint.columns(y).astype(np.float64)
    everything = np.zeros(n_rows)
    everything[counted] = rows.weight
    trained, booster = cluster.train(
        (columns, everything, attribute),
        constraint,
        outputs=(rows.is_class, rows.bounded),
        dropped=estimator._dropped,
        settings=estimator._settings(columns.shape[1]),
        rounds=estimator._round_params(rows),
    )
    estimator.certificate_ = None
    estimator._set_fitted(constraint, trained, [booster])
    estimator._warn_no_split(XGBoost, trained, rows)
    estimator._calibrate(trained.scores, rows)
    estimator._judge(constraint, trained, y[counted])
    return estimator


def _check_params(estimator: Any, sample: Any) -> None:
    """Refuse `backend_params` by a tree on one row, rather than on every worker."""
    with refusals_named("xgboost", estimator.backend_params):
        X = check_features(estimator._inner_X(sample))
        grown = XGBoost(X, estimator._settings(1)._replace(n_jobs=1))
        grown.boost(np.zeros((1, 1)), np.ones(1))


class Cluster:
    """The workers that hold the blocks of X, each with its own.

    Parameters
    ----------
    X : Dask array or frame
        The rows.

    Attributes
    ----------
    lengths : list of int
        Number of rows of every block.
    """

    def __init__(self, X: Any) -> None:
        from distributed import default_client, wait

        self.client = default_client()
        self._blocks = self.client.compute(_blocks(X))
        wait(self._blocks)
        self.lengths = self.client.gather(self.client.map(_n_rows, self._blocks))

    def _by_worker(self) -> dict[str, list[int]]:
        """Return the positions of the blocks of every worker that holds some."""
        held = self.client.who_has(self._blocks)
        found: dict[str, list[int]] = {}
        for position, block in enumerate(self._blocks):
            found.setdefault(held[block.key][0], []).append(position)
        return found

    def train(
        self,
        values: Sequence[np.ndarray],
        constraint: FittedConstraint,
        *,
        outputs: tuple[bool, Callable[[np.ndarray], np.ndarray]],
        dropped: Sequence[int],
        settings: Settings,
        rounds: dict[str, Any],
    ) -> tuple[Trained, Any]:
        """Return what has become of the rounds, with the scores of all rows, and the booster.

        Parameters
        ----------
        values : sequence of ndarray of shape (n, ...)
            Targets as columns, weights and attribute of all rows.
        constraint : FittedConstraint
            The constraint on those of positive weight.
        outputs : tuple of bool and callable
            Whether the targets are classes, and what is bounded of scores, as in :class:`Rows`.
        dropped : sequence of int
            Columns of X that the trees do not see.
        settings : Settings
            Those of :class:`XGBoost`, but for the threads, which are the worker's.
        rounds : dict
            Keywords of :func:`train`.

        Raises
        ------
        RuntimeError
            If a worker is lost; what fails on one is raised as it is.
        """
        split = [np.split(own, np.cumsum(self.lengths)[:-1]) for own in values]
        shares = list(zip(*split, strict=True))
        common = {
            "kernel": constraint.kernel,
            "outputs": outputs,
            "dropped": list(dropped),
            "ascent": Ascent(constraint, rounds["n_rounds"], settings.learning_rate),
            "settings": settings,
            "rounds": rounds,
        }
        places = self._by_worker()
        tracker = self.client.run_on_scheduler(_start_tracker, len(places))
        tasks = {
            worker: self.client.submit(
                _grow,
                [self._blocks[position] for position in positions],
                [shares[position] for position in positions],
                {**tracker, "dmlc_task_id": f"{number:06}"},
                common,
                workers=[worker],
                allow_other_workers=False,
                pure=False,
                retries=0,
            )
            for number, (worker, positions) in enumerate(places.items())
        }
        found = self._gather(tasks)
        trained, _, grown = next(own for own in found if own[2] is not None)
        scores: list[Any] = [None] * len(self._blocks)
        for positions, (_, own, _) in zip(places.values(), found, strict=True):
            for position, block in zip(positions, own, strict=True):
                scores[position] = block
        return trained._replace(scores=np.concatenate(scores)), grown

    def _gather(self, tasks: dict[str, Any]) -> list[Any]:
        """Return the results of the tasks, one for each worker, all of which have to live."""
        from distributed import wait

        futures = list(tasks.values())
        while not all(future.done() for future in futures):
            with suppress(TimeoutError):
                wait(futures, timeout=_INTERVAL, return_when="FIRST_COMPLETED")
            lost = tasks.keys() - self.client.scheduler_info(n_workers=-1)["workers"].keys()
            if any(future.status == "error" for future in futures):
                break
            if lost:
                self.client.cancel(futures, force=True)
                raise RuntimeError(
                    f"the worker(s) {sorted(lost)} were lost while trees grew on their rows. No "
                    "model has been kept: fit again."
                )
        return self.client.gather(futures)


def _n_rows(block: Any) -> int:
    return len(block) if not sp.issparse(block) else block.shape[0]


def _start_tracker(n_workers: int, dask_scheduler: Any) -> dict[str, Any]:
    """Start what brings XGBoost's workers together, on the scheduler, and return where it is."""
    from distributed.comm import get_address_host
    from xgboost.tracker import RabitTracker

    host = get_address_host(dask_scheduler.address)
    tracker = RabitTracker(n_workers, host_ip=host, sortby="task")
    tracker.start()
    Thread(target=tracker.wait_for, daemon=True).start()
    return tracker.worker_args()


def _grow(
    blocks: list[Any],
    shares: list[tuple[np.ndarray, ...]],
    tracker: dict[str, Any],
    common: dict[str, Any],
) -> tuple[Trained, list[np.ndarray], Any]:
    """Run the rounds on the rows of a worker; return the scores by block, and once the booster."""
    from distributed import get_worker
    from xgboost import collective

    counted = [weight > 0 for _, weight, _ in shares]
    kept = np.flatnonzero(np.concatenate(counted))
    y, weight, attribute = (np.concatenate(own)[kept] for own in zip(*shares, strict=True))
    X = _safe_indexing(_joined(blocks), kept)
    if common["dropped"]:
        X = drop_columns(X, common["dropped"])
    columns = joint_columns(common["kernel"], attribute, FittedKernel.orthonormal)
    is_class, bounded = common["outputs"]
    rows = Rows(y, weight, columns, is_class, bounded, _total)
    with collective.CommunicatorContext(**tracker):
        settings = common["settings"]._replace(n_jobs=get_worker().state.nthreads)
        grown = XGBoost(check_features(X), settings)
        trained = train([Member(grown, slice(None))], rows, common["ascent"], **common["rounds"])
        booster = grown.finish() if collective.get_rank() == 0 else None
    ends = np.cumsum([own.sum() for own in counted])
    return trained, np.split(trained.scores, ends[:-1]), booster


def _joined(blocks: list[Any]) -> Any:
    if sp.issparse(blocks[0]):
        return sp.vstack(blocks, format="csr")
    if hasattr(blocks[0], "columns"):
        import pandas as pd

        return pd.concat(blocks)
    return np.concatenate(blocks)


def _total(sums: np.ndarray) -> np.ndarray:
    from xgboost import collective

    return collective.allreduce(np.ascontiguousarray(sums), collective.Op.SUM).reshape(sums.shape)
