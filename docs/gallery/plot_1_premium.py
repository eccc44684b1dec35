"""
How do I remove age from a premium without changing total revenue?
==================================================================

Motor claims are U-shaped in the age of the driver: the young and the old cost more. An insurer
may not, or does not want to, pass all of that on to the premium. A slope says nothing about a U;
the **standard deviation that a spline of age explains** does, in the currency of the premium.
"""

# %%
# A portfolio
# -----------
# 6,000 contracts with an exposure (the share of the year that a contract was in force), which is
# their weight. Power of the car and kilometres are undisputed reasons for a premium.
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.model_selection import train_test_split

from gedi_sklearn import DependenceConstraint, ProjectedRegressor
from gedi_sklearn.metrics import gedi

rng = np.random.default_rng(0)
n = 6000
age = rng.integers(18, 86, n)
power = rng.gamma(9, 10, n)
kilometres = rng.gamma(4, 3, n) * (1 - 0.004 * (age - 18))
exposure = rng.uniform(0.2, 1, n)
expected = 100 + 0.25 * (age - 52) ** 2 + 1.5 * power + 8 * kilometres
claims = expected * rng.gamma(16, 1 / 16, n)
X = pd.DataFrame({"age": age, "power": power, "kilometres": kilometres})
X_train, X_new, y_train, y_new, w_train, w_new = train_test_split(
    X, claims, exposure, test_size=0.5, random_state=0
)

# %%
# A premium that depends on age
# -----------------------------
# ``norm="sd"`` measures in the unit of the premium: the standard deviation explained by age.
learner = HistGradientBoostingRegressor(max_iter=60, learning_rate=0.08, random_state=0)
plain = learner.fit(X_train, y_train, sample_weight=w_train)
measured = {"sensitive_features": X_new["age"], "norm": "sd", "kernel": "spline"}
before = plain.predict(X_new)
print(f"standard deviation of the premium explained by age: {gedi(before, **measured):.0f}")

# %%
# A premium with a fifth of that dependence
# -----------------------------------------
# The same learner, and a correction that is a function of age.
fair = ProjectedRegressor(learner, DependenceConstraint(0.2), sensitive_columns="age")
fair.fit(X_train, y_train, sample_weight=w_train)
after = fair.predict(X_new)
print(f"standard deviation of the premium explained by age: {gedi(after, **measured):.0f}")
print(fair.verdict_)

# %%
# Total revenue
# -------------
# The columns of the kernel are centred with the weights of the contracts, so the correction sums
# to zero over the training portfolio, and the premiums still pay the claims. On new contracts the
# total changes by sampling error only.
uncorrected, corrected = fair.estimator_.predict(X_train), fair.predict(X_train)
print(f"portfolio: {w_train @ uncorrected:,.2f} before, {w_train @ corrected:,.2f} after")
print(f"new contracts: {w_new @ before:,.0f} before, {w_new @ after:,.0f} after")

# %%
# Before and after
# ----------------
figure, axes = plt.subplots(1, 2, figsize=(9, 3.6), sharey=True, layout="constrained")
measured = {"sensitive_features": X_train["age"], "norm": "sd", "kernel": "spline"}
for ax, title, premium in zip(axes, ("before", "after"), (uncorrected, corrected), strict=True):
    by_age = pd.Series(premium).groupby(X_train["age"].to_numpy()).mean()
    ax.scatter(X_train["age"], premium, s=4, alpha=0.25, color="0.55", linewidths=0)
    ax.plot(by_age, color="C0", linewidth=2.5)
    mean = np.average(premium, weights=w_train)
    ax.axhline(mean, color="black", linewidth=0.8, linestyle="--")
    moved = gedi(premium, **measured, sample_weight=w_train)
    ax.set(
        title=f"{title}: mean {mean:.0f}, explained by age: {moved:.0f}", xlabel="age of the driver"
    )
axes[0].set(ylabel="predicted premium", ylim=(0, 900))
plt.show()
