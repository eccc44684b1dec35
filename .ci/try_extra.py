"""What README says that an extra is for, in an environment with this extra alone: one call each."""

import sys

import numpy as np

rng = np.random.default_rng(0)
X = rng.normal(size=(300, 3))
y = X[:, 0] + X[:, 1] + 0.1 * rng.normal(size=300)


def plot() -> None:
    """Draw a display."""
    import matplotlib

    matplotlib.use("Agg")
    from gedi_sklearn.plotting import DependenceDisplay

    DependenceDisplay.from_predictions(y, sensitive_features=X[:, 0])


def boosting() -> None:
    """Grow trees with both packages."""
    from gedi_sklearn import ConstrainedBoostingRegressor

    for backend in ("xgboost", "lightgbm"):
        ConstrainedBoostingRegressor(backend, n_estimators=20, sensitive_columns=0).fit(X, y)


def torch() -> None:
    """Train a network under the Lagrangian dual; measure the neural HGR."""
    from gedi_sklearn import LagrangianDualRegressor
    from gedi_sklearn.metrics import hgr

    LagrangianDualRegressor((8,), max_epochs=3, sensitive_columns=0, random_state=0).fit(X, y)
    hgr(y, sensitive_features=X[:, 0], method="nn", random_state=0)


def dask() -> None:
    """Measure blocks of rows."""
    import dask.array as da

    import gedi_sklearn.dask as blocks

    blocks.gedi(da.from_array(y, 100), sensitive_features=da.from_array(X[:, 0], 100))


if __name__ == "__main__":
    {one.__name__: one for one in (plot, boosting, torch, dask)}[sys.argv[1]]()
    print(f"{sys.argv[1]}: done")
