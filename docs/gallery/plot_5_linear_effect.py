"""
How do I allow a linear effect, and forbid every other?
=======================================================

Pay rises with seniority. The works agreement accepts a fixed amount per year, the same for
everybody, but no curve: steep for the young, flat for the old. A *fine* constraint bounds each
function of the attribute separately.
"""

# %%
# A curved effect
# ---------------
import matplotlib.pyplot as plt
import numpy as np
from sklearn.ensemble import HistGradientBoostingRegressor

from gedi_sklearn import FineConstraint, PolynomialKernel, ProjectedRegressor
from gedi_sklearn.metrics import gedi_coefficients
from gedi_sklearn.plotting import DependenceDisplay, GediCoefficientsDisplay

rng = np.random.default_rng(0)
seniority = rng.uniform(0, 40, 2000)
hours, grade = rng.normal(38, 6, 2000), rng.integers(1, 6, 2000)
pay = 1200 + 40 * hours + 250 * grade + 1500 * np.sqrt(seniority / 40) + rng.normal(0, 200, 2000)
X = np.column_stack([seniority, hours, grade])
learner = HistGradientBoostingRegressor(max_iter=60, random_state=0)

# %%
# A straight line stays
# ---------------------
# The first column of a standardised polynomial of degree 3 is free (``inf``), the others are
# forbidden (0). A number instead of the list, 0.5, would also halve the slope.
# The correction is computed from cross-fitted predictions, so that the forbidden terms are nearly 0
# on these rows; the line absorbs the linear part of the cubic term.
kernel = PolynomialKernel(3, standardize=True)
constraint = FineConstraint([np.inf, 0, 0], kernel=kernel)
fair = ProjectedRegressor(learner, constraint, sensitive_columns=0).fit(X, pay)
before, after = fair.estimator_.predict(X), fair.predict(X)
for name, predicted in (("before", before), ("after", after)):
    coefficients = gedi_coefficients(predicted, sensitive_features=seniority, kernel=kernel)
    print(name, coefficients.round() + 0.0)

# %%
# The same in pictures
# --------------------
figure, axes = plt.subplots(1, 3, figsize=(13, 3.8), layout="constrained")
for ax, title, predicted in zip(axes, ("before", "after"), (before, after), strict=False):
    DependenceDisplay.from_predictions(
        pay, predicted, sensitive_features=seniority, kernel=kernel, name="predicted pay", ax=ax
    )
    ax.set(title=title, xlabel="years of seniority", ylim=(2500, 6500))
GediCoefficientsDisplay.from_predictions(
    before, after, sensitive_features=seniority, kernel=kernel, ax=axes[2]
)
axes[2].set_title("terms before (grey) and after")
plt.show()
