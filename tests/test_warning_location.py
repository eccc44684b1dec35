"""A warning points at the user's line: there it is read, and there Python shows it once."""

import warnings
from pathlib import Path

import numpy as np
import pytest
from sklearn.model_selection import GridSearchCV, cross_validate

import gedi_sklearn
from gedi_sklearn import (
    CoarseConstraint,
    MovingTargetsRegressor,
    ProjectedRegressor,
    project_targets,
)
from gedi_sklearn.exceptions import UnseenDependenceWarning
from gedi_sklearn.metrics import didi, gedi, hgr, make_disparity_scorer

CONSTANT = np.ones(12)
SKEWED = np.r_[np.zeros(8), 1, 2, 3, 4]
Y = np.linspace(0, 1, 12) ** 2
X = np.c_[CONSTANT, Y]


@pytest.mark.parametrize(
    "call",
    [
        lambda: gedi(Y, sensitive_features=CONSTANT),
        lambda: gedi(CONSTANT, Y, sensitive_features=Y, relative=True),
        lambda: didi(Y, sensitive_features=CONSTANT),
        lambda: didi(CONSTANT, Y, sensitive_features=Y > 0.5, relative=True, task="regression"),
        lambda: didi(Y, sensitive_features=SKEWED, n_bins=5),
        lambda: hgr(Y, sensitive_features=CONSTANT),
        lambda: hgr(np.eye(40)[0], sensitive_features=np.arange(40)),
        lambda: gedi(Y, sensitive_features=Y + 1e3, kernel=2),
        lambda: project_targets(
            Y, sensitive_features=Y + 1e3, constraint=CoarseConstraint(kernel=2)
        ),
        lambda: MovingTargetsRegressor(constraint=CoarseConstraint(), max_iter=1).fit(
            X, Y, sensitive_features=CONSTANT
        ),
        lambda: MovingTargetsRegressor(constraint=CoarseConstraint(), max_iter=1).fit(
            X[:, :1], Y, sensitive_features=Y
        ),
        lambda: ProjectedRegressor(constraint=CoarseConstraint(), cv=2).fit(
            X, Y, sensitive_features=CONSTANT
        ),
        lambda: cross_validate(
            MovingTargetsRegressor(constraint=CoarseConstraint(), max_iter=1, sensitive_columns=0),
            *(X, Y),
            scoring=make_disparity_scorer(sensitive_columns=0, kernel=2),
            cv=2,
        ),
    ],
)
def test_warnings_point_at_the_callers_line(call):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        call()
    assert caught
    assert {warning.filename for warning in caught} == {__file__}


def test_every_warning_goes_through_one_function():
    root = Path(gedi_sklearn.__file__).parent
    direct = [path for path in root.rglob("*.py") if "warnings.warn(" in path.read_text("utf-8")]
    assert direct == [root / "exceptions.py"]


def test_a_search_gives_the_advice_of_its_fits_once():
    x = np.random.default_rng(0).uniform(-1, 1, 1400)
    X, y = np.c_[x, x**2], x**2 + 0.1 * x
    model = ProjectedRegressor(constraint=CoarseConstraint(), sensitive_columns=0)
    grid = {"constraint__threshold": [0.1, 0.2, 0.3]}
    kinds = []
    for _ in range(2):  # each search says it
        with warnings.catch_warnings(record=True) as record:
            warnings.simplefilter("always")
            GridSearchCV(model, grid, cv=2).fit(X, y)
        kinds.append([own.category for own in record])
    assert kinds == [[UnseenDependenceWarning]] * 2
    with pytest.warns(UnseenDependenceWarning, match="% of it remains"):
        model.fit(X, y)
