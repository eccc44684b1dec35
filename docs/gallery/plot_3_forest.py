"""
How do I constrain a random forest?
===================================

A random forest forecasts violent crime in 1,993 communities. The forecast may keep a fifth of the
crime rates' dependence on the share of Black residents.

A forest memorises its training rows, so a correction fitted to its in-sample predictions would
not carry over. ``cv="oob"`` uses out-of-bag predictions.
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
# ``ProjectedRegressor`` fits the forest once and corrects its predictions; it needs the attribute
# of a new row. ``DualTargetsRegressor`` fits forests on corrected targets and predicts with the
# last one: a function of the columns of X, without the attribute if you like
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
    print(f"{name}: R2 {r2_score(y_new, predictions[name]):.2f}, remaining dependence {left:.0%}")

# %%
# New rows
# --------
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
# R² falls because the crime rates themselves depend on the attribute: the constraint removes useful
# information. The :ref:`next example <sphx_glr_auto_gallery_plot_4_threshold.py>` shows the cost of
# each threshold.
