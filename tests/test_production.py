"""What production does: fit a frame with text and gaps, save, load in another process, predict."""

import copy
import json
import pickle
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import joblib
import numpy as np
import pandas as pd
import pytest
from sklearn.base import is_classifier
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from gedi_sklearn import (
    CoarseConstraint,
    ConstrainedBoostingClassifier,
    ConstrainedBoostingRegressor,
    DidiConstraint,
    DualTargetsClassifier,
    DualTargetsRegressor,
    LagrangianDualClassifier,
    LagrangianDualRegressor,
    MovingTargetsClassifier,
    MovingTargetsRegressor,
    ProjectedClassifier,
    ProjectedRegressor,
)

pytestmark = [
    pytest.mark.filterwarnings("ignore::gedi_sklearn.exceptions.UnseenDependenceWarning"),
    pytest.mark.filterwarnings("ignore::gedi_sklearn.exceptions.ConstraintNotMetWarning"),
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
]
FORMATS = ("joblib", *(["skops"] if find_spec("skops") else []))
# What a file may hold beside this library's types and scikit-learn's, which skops trusts.
TRUSTED = {
    "numpy.dtype",
    "scipy._lib.array_api_compat.numpy._aliases.asarray",
    "scipy.interpolate._bsplines.BSpline",
    "xgboost.core.Booster",
    "lightgbm.basic.Booster",
}


def frame(n=120):
    rng = np.random.default_rng(0)
    X = pd.DataFrame(
        {
            "age": rng.uniform(20, 60, n),
            "income": rng.normal(size=n),
            "city": rng.choice(list("abc"), n),
            "team": rng.choice(["blue", "green", "red"], n),
        }
    )
    y = X["age"] / 20 + X["income"] + (X["team"] == "red") + 0.3 * rng.normal(size=n)
    X.loc[::7, "income"], X.loc[::11, "city"] = np.nan, None
    return X, y, np.where(y > y.median(), "yes", "no")


def prepared(*, drops_team):
    """Fill gaps and encode text, but for the attribute."""
    steps = [
        ("numbers", SimpleImputer(), ["income"]),
        ("text", OneHotEncoder(handle_unknown="ignore", sparse_output=False), ["city"]),
        *([("team", "drop", ["team"])] if drops_team else []),
    ]
    columns = ColumnTransformer(steps, remainder="passthrough", verbose_feature_names_out=False)
    return columns.set_output(transform="pandas")


def inside(estimator):
    return Pipeline([("prepared", prepared(drops_team=True)), ("model", estimator)])


def scaled(network):
    scaler = StandardScaler().set_output(transform="pandas")
    return Pipeline([*inside(network).steps[:1], ("scaled", scaler), ("model", network)])


def of_teams(estimator):
    estimator.set_params(sensitive_columns="team", drop_sensitive=True)
    return Pipeline([("prepared", prepared(drops_team=False)), ("model", estimator)])


AGE = {"sensitive_columns": "age"}
line, logistic = LinearRegression, LogisticRegression
PLAIN = {
    "projected": inside(ProjectedRegressor(line(), **AGE)),
    "projected classes": inside(ProjectedClassifier(logistic(), **AGE)),
    "moving": inside(MovingTargetsRegressor(line(), max_iter=2, **AGE)),
    "moving classes": inside(MovingTargetsClassifier(logistic(), max_iter=2, **AGE)),
    "dual": inside(DualTargetsRegressor(line(), max_iter=2, **AGE)),
    "dual classes": inside(DualTargetsClassifier(logistic(), max_iter=2, **AGE)),
    "boosting": inside(ConstrainedBoostingRegressor("xgboost", n_estimators=5, **AGE)),
    "boosting classes": inside(ConstrainedBoostingClassifier("lightgbm", n_estimators=5, **AGE)),
    "around a pipeline": ProjectedRegressor(
        make_pipeline(prepared(drops_team=True), line()), CoarseConstraint(0.3), **AGE
    ),
    "text": of_teams(ProjectedRegressor(line(), CoarseConstraint(0.3))),
    "text classes": of_teams(ProjectedClassifier(logistic())),
    "text groups": of_teams(ProjectedRegressor(line(), DidiConstraint(0.3))),
    "text moving": of_teams(MovingTargetsRegressor(line(), CoarseConstraint(0.3), max_iter=2)),
}
NET = {"hidden_layer_sizes": (8,), "max_epochs": 100, "learning_rate": 0.02, "random_state": 0}
NETWORKS = {
    "network": scaled(LagrangianDualRegressor(**NET, **AGE)),
    "network classes": scaled(LagrangianDualClassifier(**NET, **AGE)),
}
EVENTS = {
    "all rows": lambda X: X,
    "one row": lambda X: X[5:6],
    "other order": lambda X: X[["team", "city", "income", "age"]],
    "unseen city": lambda X: X[:3].assign(city="zz"),
    "unseen team": lambda X: X[:3].assign(team="zz"),
    "age gap": lambda X: X[:3].assign(age=np.nan),
    "team gap": lambda X: X[:3].assign(team=None),
    "no age": lambda X: X[:3].drop(columns="age"),
    "no team": lambda X: X[:3].drop(columns="team"),
}


def outcome(model, event):
    """Return predictions, or the error in words."""
    try:
        return model.predict(EVENTS[event](frame()[0])).tolist()
    except Exception as error:
        return f"{type(error).__name__}: {error}"


def loaded(path):
    if path.suffix == ".joblib":
        return joblib.load(path)
    from skops import io

    names = io.get_untrusted_types(file=path)
    trusted = [name for name in names if name.startswith("gedi_sklearn.") or name in TRUSTED]
    if "network" in path.stem:
        trusted = names
    return io.load(path, trusted=trusted)


def saved(models, folder):
    """Return the models, fitted, and what another process predicts with each from each file."""
    X, y, labels = frame()
    for name, model in models.items():
        own = model[-1] if isinstance(model, Pipeline) else model
        model.fit(X, labels if is_classifier(own) else y)
        joblib.dump(model, folder / f"{name}.joblib")
        if "skops" in FORMATS:
            from skops import io

            io.dump(model, folder / f"{name}.skops")
    ran = subprocess.run(
        [sys.executable, __file__, folder],
        capture_output=True,
        text=True,
        check=False,
        cwd=Path(__file__).parents[1],
    )
    assert ran.returncode == 0, ran.stderr
    return models, json.loads(ran.stdout.splitlines()[-1])


@pytest.fixture(scope="module")
def plain(tmp_path_factory):
    return saved(PLAIN, tmp_path_factory.mktemp("plain"))


@pytest.fixture(scope="module")
def networks(tmp_path_factory):
    return saved(NETWORKS, tmp_path_factory.mktemp("networks"))


def same(predictions):
    """Return what equals predictions; numbers but for rounding, which the other rows change."""
    is_exact = isinstance(predictions, str) or isinstance(predictions[0], str)
    return predictions if is_exact else pytest.approx(predictions, rel=1e-6)


def check(model, found, name):
    here = {event: outcome(model, event) for event in EVENTS}
    every = here["all rows"]
    assert len(every) == 120
    if is_classifier(model):
        assert set(every) == {"yes", "no"}
    else:
        assert np.std(every) > 0.1
    for event, now in here.items():
        assert found[event] == same(now)
    # In memory: the right answer, or an error that names the column.
    assert here["one row"] == same(every[5:6])
    is_around = not isinstance(model, Pipeline)
    if is_around:  # as scikit-learn's own estimators
        assert "same order as they were in fit" in here["other order"]
    else:
        assert here["other order"] == same(every)
    assert len(here["unseen city"]) == 3
    assert not isinstance(here["unseen city"], str)
    missing = "yet now missing:\n- {}" if is_around else "columns are missing: {{'{}'}}"
    attribute = "X lacks the attribute ['{}']" if is_around else missing
    assert attribute.format("age") in here["no age"]
    if "text" in name or is_around:
        assert missing.format("team") in here["no team"]
    else:  # nobody needs it
        assert here["no team"] == same(every[:3])
    if "text" not in name:
        assert here["unseen team"] == same(every[:3])
        assert here["age gap"].startswith("ValueError: ")
        assert "'age' of X) contains NaN: 3 of 3" in here["age gap"]
    elif "moving" in name:  # it looks at no attribute any more
        assert here["unseen team"] == same(every[:3])
    else:
        assert "not seen before: ['zz']" in here["unseen team"]
        assert "'team' of X) contains NaN: 3 of 3" in here["team gap"]


@pytest.mark.parametrize("kind", FORMATS)
@pytest.mark.parametrize("name", PLAIN)
def test_a_saved_model_answers_in_another_process(plain, name, kind):
    models, found = plain
    check(models[name], found[f"{name}.{kind}"], name)


@pytest.mark.torch
@pytest.mark.parametrize("kind", FORMATS)
@pytest.mark.parametrize("name", NETWORKS)
def test_a_saved_network_answers_in_another_process(networks, name, kind):
    models, found = networks
    check(models[name], found[f"{name}.{kind}"], name)


def test_types_that_are_not_listed_are_not_loaded(plain):
    """Every type of a file is known: scikit-learn's, this library's, or one of a short list."""
    io = pytest.importorskip("skops.io")
    errors = pytest.importorskip("skops.io.exceptions")
    for model in plain[0].values():
        data = io.dumps(model)
        names = io.get_untrusted_types(data=data)
        assert any(name.startswith("gedi_sklearn.") for name in names)
        assert {name for name in names if not name.startswith("gedi_sklearn.")} <= TRUSTED
    for left_out in ([], names[1:], [n for n in names if not n.startswith("gedi_sklearn.")]):
        with pytest.raises(errors.UntrustedTypesFoundException):
            io.loads(data, trusted=left_out)
    strange = PLAIN["projected"][-1].__class__(constraint=CoarseConstraint(kernel=frame))
    with pytest.raises(errors.UntrustedTypesFoundException, match="frame"):
        io.loads(io.dumps(strange), trusted=[*names, *TRUSTED])


if __name__ == "__main__":
    files = [path for path in Path(sys.argv[1]).iterdir() if path.suffix[1:] in FORMATS]
    models = {path.name: loaded(path) for path in files}
    print(
        json.dumps({k: {event: outcome(m, event) for event in EVENTS} for k, m in models.items()})
    )


@pytest.mark.parametrize(
    ("kind", "inner"),
    [
        (ProjectedRegressor, LinearRegression),
        (ProjectedClassifier, LogisticRegression),
        (MovingTargetsRegressor, LinearRegression),
        (DualTargetsRegressor, LinearRegression),
    ],
)
def test_a_saved_model_has_no_training_rows(kind, inner):
    rng = np.random.default_rng(0)
    sizes = []
    for n in (500, 2000):
        X = rng.normal(size=(n, 3))
        y = X.sum(axis=1) + rng.normal(size=n)
        y = y if inner is LinearRegression else y > 0
        model = kind(inner(), CoarseConstraint(), sensitive_columns=0).fit(X, y)
        for copied in (pickle.loads(pickle.dumps(model)), copy.deepcopy(model)):
            assert vars(model).keys() - vars(copied).keys() == {"targets_"}
            np.testing.assert_array_equal(copied.predict(X), model.predict(X))
        sizes.append(len(pickle.dumps(model)))
    # A count has a byte or two more.
    assert max(sizes) < min(5000 if kind is ProjectedRegressor else 7000, min(sizes) + 200)
