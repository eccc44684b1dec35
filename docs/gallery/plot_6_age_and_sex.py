"""
How do I constrain age and sex at once?
=======================================

One constraint for each attribute, in a list: age by a spline, sex by the difference of two
means, each with its own share.
"""

# %%
import matplotlib.pyplot as plt
import pandas as pd
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.model_selection import train_test_split

from gedi_sklearn import ConstraintList, DependenceConstraint, ProjectedClassifier, gedi
from gedi_sklearn.datasets import load_adult

X, y = load_adult(return_X_y=True, as_frame=True)
X, y = X.sample(8000, random_state=0), y.sample(8000, random_state=0)
X_train, X_new, y_train, y_new = train_test_split(X, y, test_size=0.5, random_state=0)
learner = HistGradientBoostingClassifier(
    max_iter=50, categorical_features="from_dtype", random_state=0
)

# %%
# A share for each
# ----------------
# Half of the dependence on age may remain, a fifth of that on sex. ``drop_sensitive=True`` removes
# both columns from the learner, not from the constraints: the correction still uses them.
shares = {"age": 0.5, "sex": 0.2}
both = ConstraintList([(name, DependenceConstraint(share)) for name, share in shares.items()])
fair = ProjectedClassifier(learner, both, sensitive_columns=list(shares), drop_sensitive=True, cv=3)
labels = {
    "learner": learner.fit(X_train, y_train).predict(X_new),
    "both": fair.fit(X_train, y_train).predict(X_new),
}

# %%
# New rows
# --------
left = {
    name: [
        gedi(
            y_new,
            predicted,
            sensitive_features=X_new[attribute],
            norm="sd",
            kernel="spline",
            relative=True,
        )
        for attribute in shares
    ]
    for name, predicted in labels.items()
}
table = pd.DataFrame(left, index=list(shares))
table.loc["accuracy"] = [(predicted == y_new).mean() for predicted in labels.values()]
table.round(3)

# %%
# Men and women by age
# --------------------
figure, axes = plt.subplots(1, 2, figsize=(9, 3.6), sharey=True, layout="constrained")
decade = (X_new["age"] // 10 * 10).clip(20, 60)
for ax, (name, predicted) in zip(axes, labels.items(), strict=True):
    rates = pd.Series(predicted, index=X_new.index).groupby([X_new["sex"], decade], observed=True)
    for (sex, of_sex), marker in zip(
        rates.mean().groupby(level=0, observed=True), "os", strict=True
    ):
        ax.plot(of_sex.index.get_level_values(1), of_sex, marker=marker, label=sex)
    ax.set(title=name, xlabel="age, by decades")
axes[0].set_ylabel("share predicted to earn more")
axes[0].legend()
plt.show()
