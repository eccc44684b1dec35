"""
How much does a model of income depend on age, and is it more than chance?
==========================================================================

A classifier of the Adult data (does a person earn more than 50,000 dollars?) is measured on unseen
rows: first by one number, then by its shape, then in words.
"""

# %%
# The model
# ---------
import matplotlib.pyplot as plt
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.model_selection import cross_val_predict

from gedi_sklearn import fairness_report, gedi
from gedi_sklearn.datasets import load_adult
from gedi_sklearn.metrics import gedi_inference
from gedi_sklearn.plotting import DependenceDisplay

X, y = load_adult(return_X_y=True, as_frame=True)
X, y = X.sample(4000, random_state=0), y.sample(4000, random_state=0)
learner = HistGradientBoostingClassifier(
    max_iter=60, categorical_features="from_dtype", random_state=0
)
scores = cross_val_predict(learner, X, y, cv=5, method="predict_proba")[:, 1]

# %%
# One number
# ----------
# First the slope: the change per year of age. Then the standard deviation that any smooth function
# of age explains; a slope misses curvature.
age = X["age"]
print(f"one year: {gedi(scores, sensitive_features=age):.4f}")
for kernel in ("polynomial", "spline"):
    explained = gedi(scores, sensitive_features=age, norm="sd", kernel=kernel)
    print(f"explained deviation, {kernel}: {explained:.3f} of {scores.std():.3f}")

# %%
# Could it be chance? A permutation test is exact, whatever the distribution.
test = gedi_inference(
    scores, sensitive_features=age, norm="sd", kernel="spline", method="permutation"
)
print(f"p = {test.pvalue}")

# %%
# Its shape
# ---------
# Points are people, black dots the means of ten groups of equal size, the line is the kernel's fit
# of the predictions. Dots away from the line show dependence that the kernel misses.
figure, axes = plt.subplots(1, 2, figsize=(10, 3.8), sharey=True, layout="constrained")
for ax, kernel in zip(axes, ("polynomial", "spline"), strict=True):
    DependenceDisplay.from_predictions(
        y, scores, sensitive_features=age, kernel=kernel, norm="sd", name="probability", ax=ax
    )
    ax.set_title({"polynomial": "a slope", "spline": "a spline"}[kernel])
plt.show()

# %%
# In words
# --------
# The same as a report to hand over; ``report.to_html("report.html")`` writes it as a page. The
# warning is about HGR, whose grid ends at 2.5 standard deviations.
report = fairness_report(
    y,
    scores,
    sensitive_features=X[["age"]],
    threshold=0.5,
    attribute_unit="year",
    about={"Data": "4,000 rows of Adult, each predicted by a model of the other folds"},
)
print(report)
