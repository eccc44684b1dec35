"""
Which threshold should I choose?
================================

A threshold is a decision, not a parameter to tune for score. The trade-off curve shows what every
threshold costs on unseen rows; then a search selects the best model among those that keep the
chosen one.
"""

# %%
# What each threshold costs
# -------------------------
# One fit per fold serves the whole path.
import matplotlib.pyplot as plt
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV

from gedi_sklearn import DependenceConstraint, ProjectedRegressor
from gedi_sklearn.datasets import load_communities
from gedi_sklearn.metrics import make_disparity_scorer
from gedi_sklearn.model_selection import best_under_constraint, tradeoff_curve
from gedi_sklearn.plotting import TradeoffDisplay

X, y = load_communities(return_X_y=True, as_frame=True)
bound = {"constraint": DependenceConstraint(), "sensitive_columns": "pctBlack"}
boosting = HistGradientBoostingRegressor(max_iter=40, max_leaf_nodes=6, random_state=0)
learners = {"boosting": boosting, "ridge": Ridge(alpha=100)}
curves = {
    name: tradeoff_curve(ProjectedRegressor(learner, **bound, cv=3), X, y, cv=3)
    for name, learner in learners.items()
}
curves["boosting"].to_frame().round(2)

# %%
# Predictions independent of the attribute reach values in the grey area: a smaller threshold has no
# benefit there.
figure, ax = plt.subplots(figsize=(7, 4.5), layout="constrained")
for color, (name, curve) in enumerate(curves.items()):
    TradeoffDisplay(curve=curve, name=name, score_name="R²").plot(ax=ax, color=f"C{color}")
plt.show()

# %%
# The best model that keeps a bound
# ---------------------------------
# ``best_under_constraint`` is a rule for ``refit``: the best score among the candidates whose
# indicator, on the held-out rows, is within the bound.
disparity = make_disparity_scorer(
    sensitive_columns="pctBlack", norm="sd", kernel="spline", relative=True
)
search = GridSearchCV(
    ProjectedRegressor(Ridge(), **bound, cv=3),
    {"constraint__threshold": [0.2, 0.3, 0.5], "estimator__alpha": [1.0, 10.0, 100.0, 1000.0]},
    scoring={"r2": "r2", "neg_gedi": disparity},
    refit=best_under_constraint("r2", at_most=0.35),
    cv=3,
)
search.fit(X, y)
print(search.best_params_)
for name in ("r2", "neg_gedi"):
    print(name, round(search.cv_results_[f"mean_test_{name}"][search.best_index_], 3))
