"""
How do I promise a bound for new rows?
======================================

A correction that meets 20 % on its training rows leaves a little more or less on new ones, since
coefficients are estimated. If you are accountable for the bound, overshooting must be rare.
``confidence=0.95`` corrects to a stricter threshold, chosen so that an upper confidence limit is
within the bound.
"""

# %%
# A population
# ------------
# Pay depends on age, and so do the predictions of a linear model. 50,000 people stand for the whole
# population; a company has a sample of 1,000.
import matplotlib.pyplot as plt
import numpy as np
from sklearn.linear_model import Ridge

from gedi_sklearn import CoarseConstraint, ProjectedRegressor, gedi

rng = np.random.default_rng(0)


def draw(n):
    """Draw people: age and skill, and their pay."""
    age, skill = rng.uniform(20, 60, n), rng.normal(size=n)
    pay = 1000 + 20 * age + 300 * skill + rng.normal(0, 300, n)
    return np.column_stack([age, skill]), pay


everybody, _ = draw(50_000)

# %%
# What one certificate says
# -------------------------
# The bound is absolute, 4 euros per year of age, so that it is the same for every sample.
slope = CoarseConstraint(4.0, relative=False)
fair = ProjectedRegressor(Ridge(), slope, sensitive_columns=0)
certified = ProjectedRegressor(Ridge(), slope, sensitive_columns=0, confidence=0.95)
X, y = draw(1000)
print(certified.fit(X, y).certificate_)

# %%
# How often it holds
# ------------------
# Eighty samples, each with its own model, measured on the whole population.
left = {"corrected to the bound": [], "with confidence=0.95": []}
for _ in range(80):
    X, y = draw(1000)
    for name, model in zip(left, (fair, certified), strict=True):
        predicted = model.fit(X, y).predict(everybody)
        left[name].append(gedi(predicted, sensitive_features=everybody[:, 0]))
figure, axes = plt.subplots(2, 1, figsize=(7, 4), sharex=True, sharey=True, layout="constrained")
for ax, (name, values) in zip(axes, left.items(), strict=True):
    ax.hist(values, bins=np.linspace(0, 8, 41), color="C0")
    ax.axvline(4.0, color="black", linestyle="--")
    above = np.mean(np.array(values) > 4.0)
    ax.set_title(f"{name}: above the bound in {above:.0%} of the samples")
axes[1].set_xlabel("euros per year of age, in the whole population")
plt.show()

# %%
# The price is a stricter correction. With more rows it comes closer to the bound.
for n in (1000, 4000, 16000):
    X, y = draw(n)
    print(f"{n} rows: corrected to {certified.fit(X, y).certificate_.threshold:.2f}")
