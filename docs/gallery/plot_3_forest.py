"""
How do I constrain a random forest?
===================================

Violent crime in 1,993 communities, by a random forest. The forecast shall not follow the share
of black people in the population, but for a fifth of what the crime rates themselves do.

A forest remembers its training rows, so a correction found on its own predictions for them would
not carry over. ``cv="oob"`` takes those of the trees that have not seen a row.
"""

# %%
import matplotlib.pyplot as plt
from sklearn.ensemble import RandomForestRegressor
from sklearn.metrics import r2_score
from sklearn.model_selection import train_test_split

from gedi_sklearn import DependenceConstraint, DualTargetsRegressor, ProjectedRegressor, gedi
from gedi_sklearn.datasets import load_communities
from gedi_sklearn.plotting import DependenceDisplay

X, y = load_communities(return_X_y=True, as_frame=True)
X_train, X_new, y_train, y_new = train_test_split(X, y, test_size=0.4, random_state=0)
forest = RandomForestRegressor(n_estimators=60, max_features="sqrt", random_state=0)
bound = {"constraint": DependenceConstraint(0.2), "sensitive_columns": "pctBlack"}

# %%
# Two ways
# --------
# ``ProjectedRegressor`` fits the forest once and corrects what it predicts; it needs the attribute
# of a new row. ``DualTargetsRegressor`` fits forests on corrected targets, and ``predict`` is the
# last forest's own: a function of the columns of X, of which the attribute may be left out
# (``drop_sensitive=True``).
models = {
    "plain forest": forest,
    "projected": ProjectedRegressor(forest, **bound, cv="oob"),
    "dual targets": DualTargetsRegressor(forest, **bound, cv="oob"),
}
predictions = {}
for name, model in models.items():
    predictions[name] = model.fit(X_train, y_train).predict(X_new)
    left = gedi(
        y_new,
        predictions[name],
        sensitive_features=X_new["pctBlack"],
        norm="sd",
        kernel="spline",
        relative=True,
    )
    print(f"{name}: R2 {r2_score(y_new, predictions[name]):.2f}, left {left:.0%}")

# %%
# What is left, on new rows
# -------------------------
figure, axes = plt.subplots(1, 3, figsize=(12, 3.8), sharey=True, layout="constrained")
for ax, (name, predicted) in zip(axes, predictions.items(), strict=True):
    DependenceDisplay.from_predictions(
        y_new,
        predicted,
        sensitive_features=X_new["pctBlack"],
        kernel="spline",
        norm="sd",
        name="predicted crime rate",
        ax=ax,
    )
    ax.set_title(name)
plt.show()

# %%
# R2 falls since the crime rates themselves depend on the attribute: what the constraint removes
# was of use for them. How much that is for each threshold is the
# :ref:`next story <sphx_glr_auto_gallery_plot_4_threshold.py>`.
