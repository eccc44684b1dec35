"""
How do I bound who ends up in the top decile?
=============================================

An insurer checks the decile of the claims with the highest scores by hand. Whether claims of the
old are checked more often than those of the young depends on *ranks*: on how many of each age are
above the cut, not on the mean score. Here the spread of the scores increases with age.
"""

# %%
# Simulated claims. The amount at stake rises slightly with age, and its spread strongly.
from itertools import pairwise

import matplotlib.pyplot as plt
import numpy as np
from sklearn.ensemble import HistGradientBoostingRegressor

from gedi_sklearn import DependenceConstraint, ProjectedRegressor
from gedi_sklearn.plotting import CutsDisplay


def claims(n, seed):
    rng = np.random.default_rng(seed)
    age, signs = rng.uniform(18, 85, n), rng.normal(size=(n, 2))
    spread = 0.4 + (age - 18) / 50
    amount = 0.01 * (age - 50) + spread * signs.sum(axis=1) + 0.5 * rng.normal(size=n)
    return np.c_[age, signs], amount


(X, y), (X_new, y_new) = claims(6000, 0), claims(6000, 1)
age = X_new[:, 0]

# %%
# A bound on the mean removes the slope and leaves the spread. A bound on the distribution bounds
# the share of claims above every cut, the top decile included, wherever the cut is set later.
learner = HistGradientBoostingRegressor(max_iter=60, random_state=0)
models = {
    "no bound": ProjectedRegressor(learner, DependenceConstraint(np.inf), sensitive_columns=0),
    "mean at 0": ProjectedRegressor(learner, DependenceConstraint(0.0), sensitive_columns=0),
    "every cut at 10 %": ProjectedRegressor(
        learner, DependenceConstraint(0.1, on="distribution"), sensitive_columns=0
    ),
}
scores = {name: model.fit(X, y).predict(X_new) for name, model in models.items()}
print(models["mean at 0"].verdict_)
print(models["every cut at 10 %"].verdict_)

# %%
# New claims: the share of each age in the top decile, and the standard deviation that age explains
# of the share above each cut, in points. The grey band is chance.
figure, axes = plt.subplots(1, 4, figsize=(15, 3.6), layout="constrained")
edges = np.linspace(18, 85, 9)
for number, (name, score) in enumerate(scores.items()):
    is_checked = score > np.quantile(score, 0.9)
    share = [is_checked[(age >= a) & (age < b)].mean() for a, b in pairwise(edges)]
    axes[0].plot((edges[:-1] + edges[1:]) / 2, share, f"C{number}o-", label=name)
    display = CutsDisplay.from_predictions(
        score, sensitive_features=age, name=name, ax=axes[number + 1], color=f"C{number}"
    )
    axes[number + 1].set(title=name, ylim=(0, 22))
axes[0].set(xlabel="age", ylabel="share of claims checked", ylim=(0, None))
axes[0].axhline(0.1, color="0.6", linestyle="--")
axes[0].legend()
plt.show()

# %%
# The cost of the bound: the amount at stake in the checked claims, and R².
for name, score in scores.items():
    checked, r2 = y_new[score > np.quantile(score, 0.9)], models[name].score(X_new, y_new)
    print(f"{name}: {checked.mean():.2f} a checked claim, R² {r2:.2f}")
