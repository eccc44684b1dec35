"""What the fuzz test draws from: expressions by the parameter that they are given to.

Each parameter has plain values, borderline ones that are valid or refused by what the others say,
and invalid ones. An expression may use the latent attribute ``v``, the number of rows ``n`` and the
generator ``r``. A parameter that means something else to one callable has a line of its own for
it, such as ``"hgr.degree"``.
"""

from __future__ import annotations

from typing import NamedTuple

from gedi_sklearn.kernels import NAMED_KERNELS

# What every expression may name.
PREAMBLE = """
import datetime, decimal, fractions
import numpy as np
import pandas as pd
import polars as pl
import scipy.sparse as sp
from sklearn import config_context
from sklearn.base import is_classifier
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, PolynomialFeatures, SplineTransformer
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor
from gedi_sklearn import *
from gedi_sklearn.datasets import *
from gedi_sklearn.metrics import *
from gedi_sklearn.model_selection import *
from gedi_sklearn.report import *
"""


class Values(NamedTuple):
    """Expressions by how likely they are to be refused."""

    plain: tuple[str, ...]
    borderline: tuple[str, ...] = ()
    invalid: tuple[str, ...] = ()


def _of(*levels: str) -> Values:
    """Return the values of a parameter; expressions are separated by semicolons."""
    return Values(*(tuple(level.split("; ")) if level else () for level in levels))


# What no array of rows may be, whatever it stands for.
_NO_ROWS_BUT_NONE = (
    "'abc'; 3.0; []; {'a': 1}; set(range(n)); iter(range(n)); object(); lambda: 0; "
    "np.zeros((n, 2, 2)); np.empty((n, 0)); np.array(1.0); [[1.0], [1.0, 2.0]] * (n // 2); "
    "[{}] * n"
)
_NO_ROWS = "None; " + _NO_ROWS_BUT_NONE
_NO_NUMBERS = (
    "np.where(np.arange(n) == 0, np.nan, v); np.where(np.arange(n) == 1, np.inf, v); "
    "np.where(np.arange(n) == 1, -np.inf, v); [None, *v[1:]]; [pd.NA, *v[1:]]; np.r_[v, 1.0]; "
    "v[: n // 2]; v + 1j; pd.Series(pd.date_range('2000', periods=n)); "
    "pd.Series(pd.date_range('2000', periods=n, tz='UTC')); "
    "pd.period_range('2000', periods=n, freq='D'); "
    "[datetime.date(2000, 1, 1 + i % 28) for i in range(n)]; "
    "pd.to_timedelta(np.arange(n), 's'); pl.Series([datetime.date(2000, 1, 1)] * n); "
    "sp.csr_array(v.reshape(-1, 1)); np.ma.masked_less(v, 0); "
    "np.array(['?', *v[1:]], dtype=object); pd.array([None, *range(n - 1)], dtype='Int64'); "
    "v * 1e200; [10**400] * n; [10**30 + i for i in range(n)]; [float('nan')] * n"
)

_DEGREE = _of(
    "1; 2; 3",
    "4; 5; 8; 12; np.int64(2)",
    "0; -1; 1.5; '2'; None; 10**30; np.nan; [1]; True",
)
_FLAG = _of("True; False", "np.True_", "'yes'; None; 2.5; -1")
_FOLDS = _of("None; 2", "3; KFold(2); 50", "1; 0; 'a'; 'oob'; 2.5; object()")
_SCALE = _of(
    "0.01",
    "1e-6; 1.0",
    "0; -1.0; 'a'; np.nan; None; np.inf",
)

VALUES = {
    # --- data; a kind of problem has its own targets and predictions
    "rows": _of("12; 20; 40; 60", "0; 1; 2; 3; 4; 5; 7; 150"),
    "sensitive_features": _of(
        "v; 10 * v + 40; np.round(v, 1); (v > 0) * 1; np.digitize(v, [-0.5, 0.5]); v > 0; "
        "list(v); pd.Series(v, name='a'); pl.Series(v); v.astype('float32'); "
        "np.c_[v, r.normal(size=n)]; pd.DataFrame({'a': v, 'b': r.normal(size=n)}); "
        "pl.DataFrame({'a': v}); np.where(v > 0, 'a', 'b'); r.choice(list('abc'), n); "
        "pd.Series(r.choice(list('abc'), n), dtype='category'); np.round(20 * v) + 1960",
        "np.ones(n); np.zeros(n); v * 1e-160; v * 1e-305; v * 5e-324; v * 1e150; v + 1e9; "
        "v + 1e16; np.where(np.arange(n) == 0, 1e6, v); np.where(np.arange(n) == 0, 1e150, v); "
        "np.arange(n); np.c_[v, v]; np.c_[v, np.ones(n)]; np.c_[v, v * 1e-100]; "
        "r.normal(size=(n, 6)); np.exp(8 * v); v.astype('float16'); v.astype(np.longdouble); "
        "v[::-1]; v[:, None]; v.astype(object); np.ma.array(v); [str(i) for i in range(n)]; "
        "['1'] * n; np.where(np.arange(n) == 0, 'a', 'b'); "
        "[decimal.Decimal(i % 5) for i in range(n)]; "
        "[fractions.Fraction(i % 5, 3) for i in range(n)]; "
        "pd.array(np.arange(n) % 4, dtype='Int64'); "
        "pd.Series(np.arange(n) % 4, dtype='category'); "
        "pd.DataFrame({'g': r.choice(list('ab'), n), 'a': v}); "
        "pl.Series(r.choice(list('ab'), n), dtype=pl.Categorical); "
        "np.array([b'a', b'b'] * n)[:n]; 2**60 + np.arange(n) * 1024; "
        "(np.arange(n) % 3).astype('uint8')",
        _NO_ROWS + "; " + _NO_NUMBERS,
    ),
    "real y": _of(
        "v + r.normal(size=n); 3 * v**2 + r.normal(size=n); r.poisson(2.0, n); "
        "pd.Series(v + r.normal(size=n)); list(r.normal(size=n)); r.normal(size=n)",
        "np.full(n, 3.0); np.zeros(n); 1e150 * (v + r.normal(size=n)); "
        "1e-150 * (v + r.normal(size=n)); 1e-305 * (v + r.normal(size=n)); "
        "5e-324 * np.round(10 * v); 1e12 + v; v; -v; (v > 0) * 1.0; "
        "(v + r.normal(size=n))[:, None]; (10 * v).astype('int8'); v.astype('float16'); "
        "np.where(np.arange(n) == 0, 1e100, v); np.where(np.arange(n) == 0, 1.0, 0.0); "
        "pl.Series(v); v.astype(object); [decimal.Decimal(i % 5) for i in range(n)]",
        _NO_ROWS + "; " + _NO_NUMBERS,
    ),
    "binary y": _of(
        "(v + r.normal(size=n) > 0) * 1; v + r.normal(size=n) > 0; list(r.integers(0, 2, n)); "
        "np.where(v + r.normal(size=n) > 0, 'yes', 'no'); pd.Series((v > 0) * 1)",
        "np.where(v > 0, 1, -1); np.where(v > 0, 2, 1); np.ones(n, dtype=int); "
        "(np.arange(n) == 0) * 1; (v > 0) * 1.0; (v > 0) * 1; ['yes'] * n; "
        "pd.Series(np.where(v > 0, 'yes', 'no'), dtype='category'); (v > 0)[:, None]; "
        "np.where(v > 0, 'yes', 'no').astype(object); pl.Series(v > 0); "
        "np.where(v > 0, 0.3, 0.7)",
        _NO_ROWS + "; " + _NO_NUMBERS + "; " + "np.array(['a', 1] * n, dtype=object)[:n]",
    ),
    "classes y": _of(
        "np.digitize(v + r.normal(size=n), [-0.5, 0.5]); r.choice(list('abc'), n); "
        "np.array([5, -3, 40])[r.integers(0, 3, n)]",
        "r.integers(0, 12, n); np.arange(n); np.where(np.arange(n) == 0, 2, v > 0); "
        "r.integers(0, 3, n) * 1.0; pd.Series(r.choice(list('abcd'), n), dtype='category')",
        _NO_ROWS + "; " + _NO_NUMBERS + "; " + "np.array(['a', 1, None] * n, dtype=object)[:n]; v",
    ),
    "real y_pred": _of(
        "0.5 * v + r.normal(size=n); None; list(v)",
        "np.zeros(n); v * 1e150; v * 1e-305; y; pd.Series(v); v[:, None]",
        _NO_ROWS_BUT_NONE + "; " + _NO_NUMBERS,
    ),
    "binary y_pred": _of(
        "r.random(n); None; y; np.flip(np.asarray(y))",
        "np.zeros(n); np.ones(n); np.full(n, 0.5); 1e-300 * r.random(n); r.random(n) > 0.5",
        _NO_ROWS_BUT_NONE
        + "; "
        + _NO_NUMBERS
        + "; "
        + "3 * r.random(n); -r.random(n); r.random((n, 2))",
    ),
    "classes y_pred": _of(
        "None; y; np.flip(np.asarray(y))",
        "r.dirichlet(np.ones(3), n); np.eye(3)[np.arange(n) % 3]",
        _NO_ROWS_BUT_NONE
        + "; "
        + _NO_NUMBERS
        + "; "
        + "r.random((n, 2)); r.dirichlet(np.ones(5), n)",
    ),
    "sample_weight": _of(
        "None; r.random(n) + 0.1; np.ones(n); r.integers(1, 4, n); 2.0",
        "r.integers(0, 3, n); np.full(n, 1 / 7); 1e150 * (r.random(n) + 0.1); "
        "1e-300 * (r.random(n) + 0.1); 5e-324 * np.ones(n); (np.arange(n) < 2) * 1.0; "
        "np.where(np.arange(n) == 0, 1e12, 1.0); "
        "1e-12 * np.where(np.arange(n) == 0, 1e12, 1.0); np.full(n, 1e152); v > 0; "
        "pd.Series(r.random(n)); list(r.random(n)); 10**r.uniform(-12, 12, n)",
        "np.zeros(n); -np.ones(n); 'abc'; np.ones(n + 1); np.full(n, np.nan); {}; "
        "np.full(n, np.inf); np.full(n, 1e306); ['a'] * n; np.ones((n, 2)); object(); -1.0; "
        "np.nan; 0.0; 1j * np.ones(n); [10**400] * n",
    ),
    "conditional_on": _of(
        "None; r.normal(size=n); r.normal(size=(n, 2)); r.choice(list('ab'), n)",
        "v; np.ones(n); 1e-160 * r.normal(size=n); 1e150 * r.normal(size=n); v + 1e-9; "
        "r.normal(size=(n, 30)); 1e16 + r.normal(size=n); [str(i) for i in range(n)]; "
        "pd.DataFrame({'b': r.normal(size=n), 'g': r.choice(list('ab'), n)})",
        _NO_ROWS_BUT_NONE + "; " + _NO_NUMBERS,
    ),
    "X": _of(
        "np.c_[v, r.normal(size=(n, 2))]; pd.DataFrame({'a': v, 'b': r.normal(size=n)}); "
        "pl.DataFrame({'a': v, 'b': r.normal(size=n)})",
        "np.c_[10 * v + 40, r.normal(size=n)].astype('float32'); np.c_[v > 0, v]; "
        "np.c_[np.ones(n), v]; sp.csr_array(np.c_[v, r.normal(size=n)]); v[:, None]; "
        "np.c_[v * 1e-160, r.normal(size=n)]; np.c_[v, r.normal(size=n)].tolist(); "
        "pd.DataFrame({'a': r.choice(list('ab'), n), 'b': v}); np.c_[v + 1e9, v]",
        _NO_ROWS
        + "; "
        + (
            "np.where(np.arange(n) == 0, np.nan, v)[:, None]; v; np.ones((n + 1, 2)); "
            "np.full((n, 2), np.inf); np.array([['a', 'b']] * n); v[:, None] + 1j"
        ),
    ),
    # --- what is measured
    "kernel": _of(
        "; ".join(map(repr, NAMED_KERNELS))
        + "; PolynomialKernel(2); PolynomialKernel(3, standardize=True)",
        "FourierKernel(2); FourierKernel(1, period=7.0); PolynomialKernel(7); "
        "PolynomialFeatures(2, include_bias=False); PolynomialFeatures(2); "
        "SplineTransformer(n_knots=3, include_bias=False); np.square; lambda x: np.c_[x, x]; "
        "FunctionTransformer(np.abs); StandardScaler(); 1; 3; np.int64(2)",
        "'poly'; 0; -1; 2.5; True; object(); None; PolynomialKernel; PolynomialKernel(-1); "
        "PolynomialKernel('2'); lambda x: 'a'; lambda x: x[:1]; FourierKernel(period=0); "
        "lambda x: x * np.nan; lambda x: None; LinearRegression(); PolynomialKernel(10**9)",
    ),
    "degree": _DEGREE,
    "relative": _of(
        "True; False",
        "0; 1; 2; 5; np.True_",
        "-1; 'yes'; None; 0.5; [1]",
    ),
    "subset": _of("None", "'positive'; 1; 'yes'; lambda y: y == y", "[1]; {}; object()"),
    "on": _of("'predictions'", "'residuals'", "None; 1; 'y'"),
    "norm": _of("'l1'; 'sd'", "'adjusted_sd'", "'l2'; None; 1; ['l1']"),
    "pos_label": _of("None", "1; 'yes'; True", "'z'; 99; object(); [1]; {}"),
    "task": _of(
        "'auto'",
        "'regression'; 'classification'",
        "'rank'; None; 1; ['auto']",
    ),
    "n_bins": _of(
        "None; 2; 3; 5",
        "10; 100; np.int64(4); [-9.0, 0.0, 9.0]; [-np.inf, 0.0, np.inf]",
        "0; 1; -2; 2.5; '3'; [0.0]; [1.0, 0.0]; ['a', 'b']; 10**30; [0.0, np.nan, 1.0]; "
        "[0.0, 1j]; np.zeros((2, 2)); {}; [0.0, 0.0, 0.0]",
    ),
    "fairness_report.bins": _of(
        "(2, 3); [2]",
        "(2, 100); (); [10]",
        "3; 'a'; [0]; ['2']; [2.5]; None",
    ),
    "DependenceDisplay.bins": _of("3; 10", "2; 100", "0; -1; '3'; 2.5; None"),
    "degrees": _of(
        "(1, 2); [1]",
        "(5, 1); (1, 8); ()",
        "3; 'a'; [0]; ['2']; [1.5]; None",
    ),
    "hgr.method": _of("'kde'; 'kernel'; 'chi2'", "", "'pearson'; None; 1"),
    "gedi_inference.method": _of(
        "'asymptotic'; 'permutation'; 'bootstrap'; 'simulation'",
        "",
        "'exact'; None; 2",
    ),
    "metric": _of(
        "'gedi'; 'gedi_upper'; 'didi'; 'hgr'",
        "CoarseConstraint(); DependenceConstraint(); DidiConstraint(); FineConstraint(kernel=2)",
        "'coarse'; None; 0.2; CoarseConstraint; [CoarseConstraint()]",
    ),
    "confidence": _of("0.9; 0.95", "0.5; 1e-9; 1 - 1e-12", "0; 1; 95; 'a'; np.nan"),
    "fitted": _FLAG,
    "n_new": _of("None; 1000", "1; 10**12", "0; -1; 2.5; '9'; np.inf"),
    "n_resamples": _of("19; 99", "1; 2; 10", "0; -1; 2.5; '9'; None"),
    "reference": _of(
        "None; np.linspace(-2, 2, 50)", "v; [0.0, 1.0]; np.c_[v, v]", "3; ['a', 1]; [np.nan]"
    ),
    "return_names": _FLAG,
    "standardize": _FLAG,
    "as_frame": _FLAG,
    "fairness_report.kernel": _of("'spline'; 'polynomial'", "", "'x'; 3; None"),
    "fairness_report.norm": _of("'sd'; 'l1'", "", "'l2'; None; 'adjusted_sd'"),
    "fairness_report.threshold": _of("None; 0.2", "0; 5.0; [0.2, 0.3]", "-1; 'a'; [-1]; [np.nan]"),
    "attribute_unit": _of("None; 'year'", "['year', None]", "3; [3]"),
    "target_unit": _of("None; 'points'", "''", "3; ['a']"),
    "about": _of("None; {'Data': 'five folds'}", "{}", "3; {'Data': 3}; ['a']"),
    "return_X_y": _FLAG,
    "random_state": _of(
        "0; 7",
        "np.random.RandomState(1); 2**31",
        "-1; 'a'; 1.5; np.nan; [1]",
    ),
    "n_samples": _of("10; 100", "1; 2; 3; 2000", "0; -1; 2.5; '9'; None"),
    "noise": _of(
        "1.0; 0.5",
        "0; 1e-12; 1e9",
        "-1.0; 'a'; np.nan; None; np.inf",
    ),
    "order": _DEGREE,
    "n_knots": _of("3; 4", "2; 8", "0; 1; -1; 2.5; '3'; None"),
    "period": _of(
        "None; 7.0",
        "1e-9; 1e9",
        "0; -1.0; 'a'; np.nan; np.inf",
    ),
    # --- constraints and projections
    "constraint": _of(
        "None; CoarseConstraint(); DependenceConstraint(0.5); FineConstraint()",
        "DidiConstraint(0.3); [CoarseConstraint(), CoarseConstraint(kernel=2)]; "
        "[CoarseConstraint()]; CoarseConstraint(0.4, kernel=3); FineConstraint(kernel=2); "
        "DependenceConstraint(0.3, kernel=2); FineConstraint([0.1, np.inf], kernel=2); "
        "CoarseConstraint(0.1, relative=False); []; CoarseConstraint(on='probabilities'); "
        "ConstraintList([('a', CoarseConstraint())]); CoarseConstraint(0.1, on='residuals')",
        "'coarse'; 0.2; 3; CoarseConstraint; object(); ['coarse', 3]; [None]; "
        "CoarseConstraint(-1); FineConstraint(kernel=0); CoarseConstraint('a'); "
        "DidiConstraint(relative='a'); FineConstraint(slack=-1); {'threshold': 0.2}; "
        "DependenceConstraint(relative=2); DependenceConstraint(subset='positive'); "
        "ConstraintList([CoarseConstraint()]); [('a', CoarseConstraint())]",
    ),
    "constraints": _of(
        "[('a', CoarseConstraint())]; [('a', DependenceConstraint())]",
        "[('a', CoarseConstraint()), ('b', DidiConstraint())]",
        "[]; None; [CoarseConstraint()]; [('a', 3)]; [('a__b', CoarseConstraint())]; 'a'",
    ),
    "threshold": _of(
        "0.2; 0.5; 0.05",
        "0; 0.0; np.inf; 1e-12; 1e6; 20; np.float32(0.3); [0.2]; [0.2, 0.1]; "
        "np.array([0.0, np.inf]); [0.3, 0.0, 0.1]",
        "-1; np.nan; '0.2'; None; [-1.0]; []; [[0.1]]; [np.nan]; 1j; {}; -np.inf; [None]; "
        "object(); pd.NaT; 10**400",
    ),
    "thresholds": _of(
        "[0.1, 0.5]; (0.3,)",
        "[0, np.inf]; [1e-9, 1e9]; np.linspace(0, 1, 3); None; [[0.1, 0.2], [0.3, 0.4]]",
        "[]; 3; 'a'; [-1.0]; [np.nan]; ['a']; [None]; {0.1}; [0.1, [0.2]]",
    ),
    "target_weight": _of("1.0; 0.5", "0; 1e-9; 1e9", "-1; 'a'; None; np.nan"),
    "real loss": _of(
        "'auto'; 'squared_error'; 'absolute_error'", "'hamming'", "'l2'; None; 1; 'log_loss'"
    ),
    "binary loss": _of(
        "'auto'; 'hamming'", "'log_loss'; 'squared_error'", "'l2'; None; 1; 'absolute_error'"
    ),
    "loss": _of(
        "'auto'",
        "'squared_error'; 'absolute_error'; 'hamming'; 'log_loss'",
        "'l2'; None; 1",
    ),
    "DependenceConstraint.relative": _of("True; False", "np.True_", "2; 'yes'; None"),
    "slack": _of("1e-3; 0.05", "0; 0.5; 1e-12", "-1; 'a'; None; np.nan"),
    "gap": _of("'auto'; 5e-5; 1e-3", "0; 0.5; 1", "-1; 'a'; None; np.nan"),
    "target_bounds": _of(
        "None",
        "(None, None); (-20, 20); (0, None); (None, 1e3); (-1e9, 1e9); [-30.0, 30.0]; "
        "(-np.inf, np.inf); (-1e-3, 1e-3)",
        "(1, 0); 3; 'ab'; (np.nan, 1); (0,); (0, 1, 2); (None, 'a'); (0, 0); {}",
    ),
    "solver": _of(
        "Solver(time_limit=2.0); Solver('highs', time_limit=3, gap=1e-3)",
        "Solver('gurobi', time_limit=2.0); Solver(time_limit=0.05); Solver(gap=0.5, time_limit=2)",
        "'cplex'; None; 1; Solver; Solver('x'); Solver(gap=-1); Solver(time_limit=0)",
    ),
    "Solver.name": _of("'auto'; 'highs'", "'gurobi'", "'cplex'; None; 1"),
    "Solver.params": _of(
        "None",
        "{}; {'mip_rel_gap': 0.01}; {'MIPGap': 0.01}; {'presolve': False}",
        "3; 'a'; {'x': 1}; {1: 2}; [('a', 1)]; {'mip_rel_gap': 'a'}",
    ),
    "time_limit": _of("2.0; 3", "0.05; 1e-6", "0; -1; np.nan; '1'; [1]"),
    "verbose": _of("0; False", "", "-1; 'a'; None"),
    "allow_constant": _FLAG,
    "return_targets": _FLAG,
    # --- estimators
    "real estimator": _of(
        "LinearRegression(); Ridge(0.1); DecisionTreeRegressor(max_depth=3, random_state=0)",
        "None; RandomForestRegressor(5, random_state=0); DummyRegressor(); "
        "make_pipeline(StandardScaler(), Ridge()); KNeighborsRegressor(1)",
        "'a'; 3; LinearRegression; LogisticRegression(); StandardScaler(); object()",
    ),
    "classes estimator": _of(
        "LogisticRegression(); DecisionTreeClassifier(max_depth=3, random_state=0); GaussianNB()",
        "None; RandomForestClassifier(5, random_state=0); DummyClassifier(); "
        "SVC(random_state=0); make_pipeline(StandardScaler(), LogisticRegression()); "
        "KNeighborsClassifier(1)",
        "'a'; 3; LogisticRegression; LinearRegression(); StandardScaler(); object()",
    ),
    "attribute_estimator": _of(
        "None; Ridge()",
        "DecisionTreeRegressor(random_state=0); DummyRegressor()",
        "'a'; 3; Ridge; StandardScaler(); object()",
    ),
    "sensitive_columns": _of(
        "0; 'a'",
        "-1; [0, 1]; ['a', 'b']; 2; [0]",
        "99; 'z'; []; 1.5; [0, 0]",
    ),
    "estimator.response_method": _of("'auto'; 'predict'", "'predict_proba'", "'a'; None; 1"),
    "estimator.confidence": _of("None; 0.95", "0.5; 1 - 1e-12", "0; 1; 95; 'a'; np.nan"),
    "estimator.conditional_on": _of(
        "None; 1",
        "'b'; [1]; lambda X: np.asarray(X)[:, 1]",
        "99; 'z'; 1.5; []",
    ),
    "estimator.target_weight": _of(
        "'harmonic'; 1.0",
        "0; lambda i: 1 / i; 1e9",
        "-1; 'a'; None; np.nan; lambda i: 'a'; lambda i: -1.0",
    ),
    "max_iter": _of("2; 3", "1; 0", "-1; 2.5; '3'; None"),
    "response_method": _of(
        "'predict'",
        "'auto'; 'predict_proba'; 'decision_function'",
        "'a'; None; 1",
    ),
    "cv": _of(
        "2; 3",
        "'train'; 'oob'; KFold(2); 50",
        "1; 0; -2; 'a'; 2.5; object()",
    ),
    "drop_sensitive": _FLAG,
    "tol": _of("None; 1e-3", "0; 1e-12; 10.0", "-1; 'a'; np.nan"),
    "n_iter_no_change": _of("None; 2", "1", "0; -1; 1.5; 'a'"),
    "select": _of("'last'; 'best'", "", "'first'; None; 1"),
    "n_jobs": _of("None; 1", "", "0; 1.5; '2'"),
    "sensitive_at_predict": _FLAG,
    "hidden_layer_sizes": _of("(5,)", "(); (3, 2)", "(0,); 'a'; None; 3.5; (-1,)"),
    "learning_rate": _SCALE,
    "multiplier_learning_rate": _SCALE,
    "max_epochs": _of("3", "1", "0; -1; 2.5; '3'; None"),
    "batch_size": _of("None; 8", "1; 1000", "0; -1; 2.5; '3'"),
    "callbacks": _of("None", "[]", "3; 'a'; [3]; [None]"),
    "device": _of("'cpu'", "", "'tpu9'; None; 1"),
    "backend": _of("'xgboost'; 'lightgbm'", "", "'sklearn'; None; 1"),
    "n_estimators": _of("5; 20", "1", "0; -1; 2.5; '3'; None"),
    "backend_params": _of(
        "None; {}",
        "{'max_leaves': 4}; {'max_depth': 2}",
        "3; 'a'; {'objective': 'binary'}; [('max_depth', 2)]",
    ),
    "early_stopping_rounds": _of("None", "5", "0; -1; 2.5; 'a'"),
    "ConstrainedBoostingClassifier.cv": _FOLDS,
    "ConstrainedBoostingRegressor.cv": _FOLDS,
    # --- model selection and pictures
    "score": _of("'r2'", "'mean_test_r2'", "'a'; None; 1"),
    "disparity": _of(
        "None; 'neg_gedi'",
        "'mean_test_neg_gedi'",
        "'a'; 1; 'r2'",
    ),
    "at_most": _of("0.05; 1.0", "0; np.inf", "-1; 'a'; None; np.nan"),
    "param_name": _of("None", "'constraint__threshold'; 'constraint__relative'", "'a'; 1; ''"),
    "scoring": _of(
        "None",
        "'r2'; 'accuracy'",
        "'a'; 1; lambda m, X, y: 'a'",
    ),
    "params": _of("None", "{}", "3; 'a'; {'z': 1}"),
    "groups": _of("None", "np.arange(n) % 3", "3; 'a'; [1]"),
    "error_score": _of("'raise'", "np.nan; 0", "'a'; None"),
    "name": _of("None; 'model'", "''; '_a'; '$x'; 'targets'; 'ä'"),
    "score_name": _of("'score'", "''; '$'; '_a'"),
    "subsample": _of("None; 5", "1; 1000", "0; -1; 2.5; 'a'"),
}
