"""
Can boosted trees learn a constraint while they grow?
=====================================================

Gradient boosting is fitted in rounds, so the multipliers of a constraint can ascend while the
trees grow, and one run is enough. The attribute enters the gradients of the training rows only. The
trees do not see it here, and new rows do not need it.
"""

# %%
import matplotlib.pyplot as plt
from sklearn.metrics import r2_score
from sklearn.model_selection import train_test_split

from gedi_sklearn import ConstrainedBoostingRegressor, DependenceConstraint, gedi
from gedi_sklearn.datasets import load_communities

X, y = load_communities(return_X_y=True, as_frame=True)
X = X.drop(columns="pctBlack")
X_train, X_new, y_train, y_new = train_test_split(X, y, test_size=0.4, random_state=0)
trees = {
    "n_estimators": 120,
    "backend_params": {"max_leaves": 6},
    "sensitive_columns": "race",  # is the population mostly black?
    "drop_sensitive": True,
}

# %%
# One run for each threshold
# --------------------------
models = {}
for threshold in (float("inf"), 0.5, 0.2):
    model = ConstrainedBoostingRegressor(constraint=DependenceConstraint(threshold), **trees)
    model.fit(X_train, y_train)
    predicted = model.predict(X_new)
    left = gedi(y_new, predicted, sensitive_features=X_new["race"], relative=True)
    models[threshold] = model
    print(f"threshold {threshold}: remaining share {left:.2f}, R2 {r2_score(y_new, predicted):.2f}")

# %%
# What happens in the rounds
# --------------------------
# While the predictions exceed the bound, the multiplier grows, and the next trees aim lower for one
# group. Once they are within it, the multiplier stays constant.
figure, (above, below) = plt.subplots(2, sharex=True, figsize=(7, 5), layout="constrained")
reference = models[0.2].reference_
for color, (threshold, model) in zip(("0.5", "C0", "C3"), models.items(), strict=True):
    history = model.history_
    above.plot(history["indicator"] / reference, color=color, label=f"threshold {threshold}")
    below.plot(history["multipliers"], color=color)
    if threshold < 1:
        above.axhline(threshold, color=color, linewidth=1, linestyle=":")
above.set(ylabel="share of the gap, training rows")
above.legend()
below.set(xlabel="round", ylabel="multiplier")
plt.show()

# %%
# With few rows, trees overfit, and new rows exceed the bound: ``cv=5`` grows five boosters at once
# whose multipliers use out-of-fold predictions.
print(models[0.2].verdict_)
