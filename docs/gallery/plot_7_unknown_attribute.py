"""
What if the attribute of a new row is not known?
================================================

Often the attribute may be collected for a study, but not at the counter. Training rows have it,
new rows do not. Two estimators do without it: a correction that predicts the attribute from the
*other* columns, and a model that is fitted on fair targets.
"""

# %%
import matplotlib.pyplot as plt
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.metrics import r2_score
from sklearn.model_selection import train_test_split

from gedi_sklearn import DependenceConstraint, DualTargetsRegressor, ProjectedRegressor, gedi
from gedi_sklearn.datasets import load_communities

X, y = load_communities(return_X_y=True, as_frame=True)
attribute = X.pop("race")  # is the population mostly black?
X = X.drop(columns="pctBlack")
split = train_test_split(X, attribute, y, test_size=0.4, random_state=0)
X_train, X_new, a_train, a_new, y_train, y_new = split
learner = HistGradientBoostingRegressor(max_iter=30, max_leaf_nodes=6, random_state=0)

# %%
# None of them sees the attribute of a new row
# --------------------------------------------
# The attribute is not a column here, so it is passed to ``fit`` only.
fifth = DependenceConstraint(0.2)
models = {
    "plain": learner,
    "projected, attribute known": ProjectedRegressor(learner, fifth, cv=3),
    "projected, attribute unknown": ProjectedRegressor(
        learner, fifth, sensitive_at_predict=False, cv=3
    ),
    "dual targets": DualTargetsRegressor(learner, fifth, cv=3),
}
found = {}
for name, model in models.items():
    known = {} if name == "plain" else {"sensitive_features": a_train}
    model.fit(X_train, y_train, **known)
    asks = {"sensitive_features": a_new} if name.endswith(" known") else {}
    predicted = model.predict(X_new, **asks)
    left = gedi(y_new, predicted, sensitive_features=a_new, relative=True)
    found[name] = left, r2_score(y_new, predicted)
    print(f"{name}: remaining share {left:.2f}, R2 {found[name][1]:.2f}")

# %%
# What it costs
# -------------
figure, ax = plt.subplots(figsize=(7, 4), layout="constrained")
for name, (left, score) in found.items():
    ax.plot(left, score, "o", color="C0" if name != "plain" else "0.5")
    ax.annotate(name, (left, score), xytext=(8, -4), textcoords="offset points")
ax.axvline(0.2, color="C3", linewidth=1, linestyle=":")
ax.set(
    xlabel="remaining share of the gap between the groups, on new rows",
    ylabel="R² on new rows",
    xlim=(0, 1.4),
)
plt.show()

# %%
# The correction without the attribute works as far as the other columns predict it: for communities
# they do so almost perfectly. Otherwise ``fit`` raises or warns; use dual targets then.
