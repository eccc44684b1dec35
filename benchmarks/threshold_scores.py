"""How scores of a threshold rule rank: ``python -m benchmarks.threshold_scores``.

`ProjectedClassifier` decides p > τ(x). Each score below makes the same decisions at 1/2; what they
differ in is the order of the rows on either side, and what of it depends on the attribute.
"""

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import average_precision_score, log_loss, roc_auc_score
from sklearn.model_selection import StratifiedKFold

from benchmarks._tables import markdown
from benchmarks.tasks import TASKS, load_task
from gedi_sklearn import CoarseConstraint, PolynomialKernel, ProjectedClassifier
from gedi_sklearn.metrics import gedi

_SMALLEST = 1e-9


def main() -> None:
    rows = []
    for name, (X, y, attribute) in problems().items():
        found = [scores_of(X, y, attribute, *fold) for fold in folds(X, y)]
        for form in found[0]:
            numbers = np.mean([fold[form] for fold in found], axis=0)
            rows.append([name, form, *(f"{number:.3f}" for number in numbers)])
    head = ["data", "score", "AUC", "average precision", "log loss", "share explained", "positive"]
    print(markdown(head, rows))


def problems() -> dict[str, tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """Return X, y and the attribute: Adult with few positives and as it is, Communities."""
    adult = load_task(TASKS[3])
    rare = np.flatnonzero(adult.y == 0), np.flatnonzero(adult.y == 1)
    n_kept = round(0.085 / 0.915 * len(rare[0]))
    kept = np.r_[rare[0], np.random.default_rng(0).permutation(rare[1])[:n_kept]]
    crimes = load_task(TASKS[1])
    high = (crimes.y > np.quantile(crimes.y, 0.8)).astype(int)
    return {
        "Adult, age, 8.5 % positive": (adult.X[kept], adult.y[kept], adult.sensitive[kept]),
        "Adult, age": (adult.X, adult.y, adult.sensitive),
        "Communities, pctBlack, 20 % positive": (crimes.X, high, crimes.sensitive),
    }


def folds(X: np.ndarray, y: np.ndarray):
    return StratifiedKFold(5, shuffle=True, random_state=0).split(X, y)


def scores_of(X, y, attribute, train, new) -> dict[str, list[float]]:
    """Return AUC, average precision, log loss, share explained and share of class 1 by form."""
    kernel = PolynomialKernel(3, standardize=True)
    model = ProjectedClassifier(
        LogisticRegression(max_iter=1000), CoarseConstraint(0.2, kernel=kernel)
    )
    model.fit(X[train], y[train], sensitive_features=attribute[train])
    p = model.estimator_.predict_proba(X[new])[:, 1]
    score = model.predict_proba(X[new], sensitive_features=attribute[new])[:, 1]
    inside = np.clip(attribute[new], attribute[train].min(), attribute[train].max())
    tau = 0.5 - model.kernel_.orthonormal(inside) @ model.orthonormal_correction_
    forms = {
        "the learner's p": p,
        "`predict_proba`: p / 2τ, 1 − (1 − p) / 2(1 − τ)": score,
        "σ(logit p − logit τ)": shifted(p, tau),
        "p + ½ − τ, cut to [0, 1]": np.clip(p + 0.5 - tau, 0, 1),
    }
    return {
        name: [
            roc_auc_score(y[new], score),
            average_precision_score(y[new], score),
            log_loss(y[new], np.clip(score, 1e-6, 1 - 1e-6)),
            gedi(score, sensitive_features=inside, kernel="spline", norm="sd") / score.std(),
            (score > 0.5).mean(),
        ]
        for name, score in forms.items()
    }


def shifted(p: np.ndarray, tau: np.ndarray) -> np.ndarray:
    p, tau = (np.clip(v, _SMALLEST, 1 - _SMALLEST) for v in (p, tau))
    odds = p / (1 - p) * (1 - tau) / tau
    return odds / (1 + odds)


if __name__ == "__main__":
    main()
