"""
How do I build a rating table with a bound on age?
==================================================

Claims are counted, and frequencies are multiplied: by region, car and age of the driver. A tariff
that keeps a fifth of the effect of age is then a table of factors, one for every age, and no
premium becomes negative.
"""

# %%
# A portfolio
# -----------
# Exposure is a weight, and the model predicts a rate: claims per year at risk.
import matplotlib.pyplot as plt
import numpy as np
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.metrics import mean_poisson_deviance
from sklearn.model_selection import train_test_split

from gedi_sklearn import DependenceConstraint, ProjectedRegressor, fairness_report
from gedi_sklearn.metrics import gedi

rng = np.random.default_rng(0)
n = 50_000
age = np.clip(rng.gamma(6, 7, n) + 16, 18, 90)
region, car = rng.normal(size=n), rng.normal(size=n)
young, old = np.clip((32 - age) / 14, 0, 1), np.clip((age - 65) / 20, 0, 1)
years = rng.uniform(0.2, 1.0, n)
claims = rng.poisson(years * np.exp(-1.2 + 1.1 * young + 0.6 * old + 0.8 * region + 0.6 * car))
X = np.c_[age, region, car]
X_train, X_new, y_train, y_new, w_train, w_new = train_test_split(
    X, claims / years, years, test_size=0.5, random_state=0
)
print(f"{np.mean(claims == 0):.0%} of the policies have no claim")

# %%
# A fifth of the effect of age
# ----------------------------
# The loss decides how predictions are corrected: ``"squared_error"`` adds, ``"kl"`` multiplies.
trees = HistGradientBoostingRegressor(loss="poisson", max_iter=60, max_leaf_nodes=8, random_state=0)
explained = {"norm": "sd", "kernel": "spline", "relative": True, "sample_weight": w_new}
predicted = {}
for loss in ("squared_error", "kl"):
    model = ProjectedRegressor(trees, DependenceConstraint(0.2), loss=loss, sensitive_columns=0)
    model.fit(X_train, y_train, sample_weight=w_train)
    predicted[loss] = model.predict(X_new)
predicted["unconstrained"] = model.estimator_.predict(X_new)
for name, p in predicted.items():
    left = gedi(y_new, p, sensitive_features=X_new[:, 0], **explained)
    total = (w_new @ p) / (w_new @ y_new)
    line = f"{name:14s} left {left:.2f}, negative {np.mean(p < 0):.1%}, total {total:.3f}"
    if (p > 0).all():
        deviance = mean_poisson_deviance(y_new, p, sample_weight=w_new)
        line += f", Poisson deviance {deviance:.3f}"
    print(line)

# %%
# The rating table
# ----------------
# The tariff gets one new column of factors. Young drivers cost more and pay for a fifth of that
# only; the others pay the difference, so that the total is unchanged.
ages = np.arange(18, 91)
factors = model.relativities(ages.clip(X_train[:, 0].min(), X_train[:, 0].max()))
figure, ax = plt.subplots(figsize=(7, 4), layout="constrained")
ax.step(ages, factors, where="mid")
ax.axhline(1.0, color="grey", linestyle=":")
ax.set(xlabel="age of the driver", ylabel="relativity")
plt.show()

# %%
# One page to hand over
# ---------------------
report = fairness_report(
    y_new,
    predicted["kl"],
    sensitive_features=X_new[:, 0],
    sample_weight=w_new,
    attribute_unit="year",
    target_unit="claims a year",
    about={"Data": "25,000 policies that the model has not seen"},
)
print(report)
