"""One unit of work: a row of the paper's tables on one fold."""

import json
import platform
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from importlib.metadata import version
from typing import Any

import numpy as np
from sklearn.ensemble import (
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import accuracy_score, r2_score
from sklearn.neural_network import MLPClassifier

from benchmarks._constraints import named_constraint
from benchmarks.tasks import N_FOLDS, TASKS, Task, TaskData, load_task, split
from gedi_sklearn import (
    LagrangianDualClassifier,
    LagrangianDualRegressor,
    MovingTargetsClassifier,
    MovingTargetsRegressor,
    Solver,
)
from gedi_sklearn.metrics import gedi, gedi_inference, hgr

# The row's name in the paper's tables: a learner, then its constraint if it has one.
_MOVING_TARGETS = {"+MT": "coarse", "+MT-Fine": "fine", "+MT-Coarse": "coarse"}
# The paper's "semantics-based regularizer", networks on the Lagrangian dual.
_REGULARIZER = {"+SBR": "coarse", "+SBR-Fine": "fine", "+SBR-Coarse": "coarse"}
CONSTRAINTS = {"": None, **_MOVING_TARGETS, **_REGULARIZER}
# Hidden layers of the paper's networks, of a classifier and of a regressor.
LAYERS = ((32, 32, 32), (256, 256))
_EPOCHS = 200
_REGULARIZER_EPOCHS = 500  # of all rows at once
_LAST_REGULARIZER_STEP = 5e-4  # the first is Adam's default, 1e-3


def _network_regressor(**options: Any) -> Any:
    from benchmarks._network import NetworkRegressor  # the one row that needs torch

    return NetworkRegressor(LAYERS[True], epochs=_EPOCHS, batch_size=128, **options)


def _network_classifier(**options: Any) -> Any:
    return MLPClassifier(
        LAYERS[False],
        batch_size=128,
        alpha=0.0,  # no weight is penalised
        max_iter=_EPOCHS,
        n_iter_no_change=_EPOCHS + 1,  # all epochs are run
        **options,
    )


# The classifier (Adult) and the regressor (Communities).
LEARNERS: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "RF": (RandomForestClassifier, RandomForestRegressor),
    "GB": (GradientBoostingClassifier, GradientBoostingRegressor),
    "NN": (_network_classifier, _network_regressor),
}
MODELS = (
    *(learner + suffix for learner in LEARNERS for suffix in ("", *_MOVING_TARGETS)),
    *("NN" + suffix for suffix in _REGULARIZER),
)
SOLVERS = ("gurobi", "highs", "auto")
PACKAGES = ("gedi-sklearn", "scikit-learn", "numpy", "scipy", "gurobipy")


@dataclass(frozen=True)
class Settings:
    """What a run may choose; the defaults are the paper's."""

    max_iter: int = 10
    solver: str = "gurobi"
    seed: int = 0

    def text(self, model: str) -> str:
        """Name all that a result depends on besides its seed, for the CSV and for resuming."""
        if model[2:] in _REGULARIZER:
            return json.dumps({"last_step": _LAST_REGULARIZER_STEP})
        if model[2:] not in _MOVING_TARGETS:
            return json.dumps({})
        return json.dumps({"max_iter": self.max_iter, "solver": self.solver})


@dataclass(frozen=True)
class Unit:
    """A model on one fold of a task."""

    task: Task
    model: str
    fold: int

    def key(self, settings: Settings) -> tuple[str, ...]:
        """Return the columns of the CSV that tell whether this unit is done."""
        record = self.identity(settings)
        return tuple(str(record[name]) for name in KEY)

    def identity(self, settings: Settings) -> dict[str, Any]:
        return {
            "dataset": self.task.dataset,
            "protected": self.task.protected,
            "model": self.model,
            "fold": self.fold,
            "seed": settings.seed,
            "settings": settings.text(self.model),
        }

    def __str__(self) -> str:
        return f"{self.task} {self.model} fold {self.fold}"


@dataclass(frozen=True)
class Outcome:
    """What is measured; the columns of the CSV after those of the unit."""

    score_train: float
    score_val: float
    gedi_train: float
    gedi_val: float
    hgr_train: float
    hgr_val: float
    null_train: float
    null_val: float
    seconds_total: float
    seconds_learner: float
    seconds_master: float
    n_iter: int
    worst_gap: float
    status: str


KEY = ("dataset", "protected", "model", "fold", "seed", "settings")
COLUMNS = (*KEY, *Outcome.__annotations__, *PACKAGES, "python")


def models_of(task: Task) -> tuple[str, ...]:
    """Return the paper's rows of a task: with a binary attribute fine and coarse coincide."""
    kinds = ("",) if task.protected_kind == "binary" else ("-Fine", "-Coarse")
    moving_targets = [f"+MT{kind}" for kind in kinds]
    rows = [learner + suffix for learner in LEARNERS for suffix in ("", *moving_targets)]
    return (*rows, *(f"NN+SBR{kind}" for kind in kinds))


def constraint_of(model: str) -> str | None:
    return CONSTRAINTS[model[2:]]


def units(
    *,
    datasets: Sequence[str],
    protected: Sequence[str],
    models: Sequence[str],
    n_folds: int = N_FOLDS,
) -> Iterator[Unit]:
    """Yield the units of the paper's rows that are asked for, fold by fold."""
    for task in TASKS:
        if task.dataset in datasets and task.protected in protected:
            for fold in range(n_folds):
                for model in models_of(task):
                    if model in models:
                        yield Unit(task, model, fold)


def make_model(task: Task, model: str, settings: Settings) -> Any:
    """Build an unfitted model: default parameters, and under a constraint the paper's."""
    constraint = constraint_of(model)
    if model[2:] in _REGULARIZER:
        return make_regularizer(task, model, settings.seed)
    learner = LEARNERS[model[:2]][task.is_regression](random_state=settings.seed)
    if constraint is None:
        return learner
    moving_targets = MovingTargetsRegressor if task.is_regression else MovingTargetsClassifier
    return moving_targets(
        learner,
        named_constraint(constraint, 0.2, kernel=task.degree),
        loss="squared_error" if task.is_regression else "hamming",
        target_weight="harmonic",
        max_iter=settings.max_iter,
        cv="train",
        solver=Solver(settings.solver, gap=5e-5),
        # None leaves the learner's own seed in every fit, as the paper does.
        random_state=None,
        **({} if task.is_regression else {"response_method": "predict"}),
    )


def make_regularizer(
    task: Task, model: str, seed: int, *, last_step: float = _LAST_REGULARIZER_STEP, **steps: float
) -> Any:
    """Build the network of an SBR row; its step falls along a cosine to the last one.

    At a constant step the last epoch is anywhere around the threshold.
    """
    from skorch.callbacks import LRScheduler  # the rows that need torch

    dual = LagrangianDualRegressor if task.is_regression else LagrangianDualClassifier
    decay = LRScheduler("CosineAnnealingLR", T_max=_REGULARIZER_EPOCHS, eta_min=last_step)
    return dual(
        LAYERS[task.is_regression],
        named_constraint(constraint_of(model), 0.2, kernel=task.degree),
        max_epochs=_REGULARIZER_EPOCHS,
        callbacks=[("decay", decay)],
        random_state=seed,
        **steps,
    )


def run_unit(unit: Unit, settings: Settings) -> dict[str, Any]:
    """Fit and measure; return one line of the CSV."""
    task, data = unit.task, load_task(unit.task)
    *_, (train, val) = split(task, data, n_folds=unit.fold + 1, seed=settings.seed)
    model = make_model(task, unit.model, settings)
    fit_params = (
        {} if constraint_of(unit.model) is None else {"sensitive_features": data.sensitive[train]}
    )
    start = time.perf_counter()
    with warnings.catch_warnings():
        # The command line gives the notice once, not every process again.
        warnings.filterwarnings("ignore", "Gurobi runs on the size-limited licence", UserWarning)
        # The networks stop after the paper's number of epochs by intention.
        warnings.filterwarnings("ignore", "Stochastic Optimizer: Maximum", ConvergenceWarning)
        # That is a column of the table.
        warnings.filterwarnings("ignore", ".*the predictions for the training rows do not meet")
        model.fit(data.X[train], data.y[train], **fit_params)
    seconds = time.perf_counter() - start
    outcome = Outcome(
        **_measure(model, task, data, train, "train"),
        **_measure(model, task, data, val, "val"),
        seconds_total=round(seconds, 3),
        **_loop_facts(model, seconds),
    )
    return unit.identity(settings) | asdict(outcome) | versions()


def _measure(
    model: Any, task: Task, data: TaskData, rows: np.ndarray, part: str
) -> dict[str, float]:
    """Score the predictions of some rows and measure them with every indicator."""
    y, predictions = data.y[rows], model.predict(data.X[rows])
    attribute = {"sensitive_features": data.sensitive[rows]}
    with warnings.catch_warnings():
        # The grid of ±2.5 deviations misses the rare group of Communities/race.
        warnings.filterwarnings("ignore", ".*of the rows lie outside", UserWarning)
        maximal_correlation = hgr(y, predictions, relative=True, **attribute)
    by_chance = gedi_inference(y, predictions, kernel=task.degree, relative=1, **attribute)
    return {
        **score_and_gedi(task, data, rows, predictions, part),
        f"hgr_{part}": maximal_correlation,
        f"null_{part}": by_chance.null_mean,
    }


def score_and_gedi(
    task: Task, data: TaskData, rows: np.ndarray, predictions: np.ndarray, part: str
) -> dict[str, float]:
    """Return the two measures of the paper's tables: R2 or accuracy, and GeDI %."""
    y = data.y[rows]
    score = r2_score if task.is_regression else accuracy_score
    attribute = {"sensitive_features": data.sensitive[rows]}
    return {
        f"score_{part}": float(score(y, predictions)),
        f"gedi_{part}": gedi(y, predictions, kernel=task.degree, relative=1, **attribute),
    }


def _loop_facts(model: Any, seconds: float) -> dict[str, Any]:
    """Sum up a Moving Targets history; other models project nothing."""
    history = getattr(model, "history_", {})
    if "projection_seconds" not in history:
        return {
            "seconds_learner": round(seconds, 3),
            "seconds_master": 0.0,
            "n_iter": 0,
            "worst_gap": float("nan"),
            "status": "",
        }
    # Entry 0 is the first fit, which has no projection.
    projections = {name: np.asarray(values)[1:] for name, values in history.items()}
    return {
        "seconds_learner": round(float(np.sum(history["fit_seconds"])), 3),
        "seconds_master": round(float(np.sum(projections["projection_seconds"])), 3),
        "n_iter": int(model.n_iter_),
        "worst_gap": float(max(projections["gap"], default=float("nan"))),
        "status": " ".join(sorted(set(projections["status"]))),
    }


def versions() -> dict[str, str]:
    return {name: version(name) for name in PACKAGES} | {"python": platform.python_version()}
