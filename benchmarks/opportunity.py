"""Equal opportunity on unseen rows of Adult, age: ``python -m benchmarks.opportunity --help``."""

import argparse
import warnings
from collections.abc import Sequence

import numpy as np
from sklearn.ensemble import HistGradientBoostingClassifier

from benchmarks._tables import markdown
from benchmarks.tasks import N_FOLDS, TASKS, load_task, split
from gedi_sklearn import CoarseConstraint, ProjectedClassifier
from gedi_sklearn.metrics import gedi

AGE = TASKS[-1]
THRESHOLD = 0.02


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.opportunity",
        description="The GeDI of the positive rows, pooled over the paper's validation folds, of a "
        "plain learner and of one whose positive rows are bounded.",
    )
    parser.add_argument("--degree", nargs="+", type=int, default=(3, 5))
    parser.add_argument("--folds", type=int, choices=range(1, N_FOLDS + 1), default=N_FOLDS)
    options = parser.parse_args(argv)
    header = ["degree", "accuracy", "with the bound", "GeDI of the positive", "with the bound"]
    print(markdown(header, [row(degree, options.folds) for degree in options.degree]))


def row(degree: int, n_folds: int) -> list[str]:
    """Return accuracies and indicators of the plain learner and the corrected one."""
    data = load_task(AGE)
    bound = CoarseConstraint(THRESHOLD, kernel=degree, relative=False, subset="positive")
    predictions, rows = [], []
    for train, val in split(AGE, data, n_folds=n_folds):
        model = ProjectedClassifier(
            HistGradientBoostingClassifier(random_state=0),
            constraint=bound,
            sensitive_columns=data.feature_names.index(AGE.protected),
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # what they say is what is shown
            model.fit(data.X[train], data.y[train])
        X = data.X[val]
        predictions.append((model.estimator_.predict(X), model.predict(X)))
        rows.append(val)
    unseen = np.concatenate(rows)
    y, x = data.y[unseen], data.sensitive[unseen]
    both = [np.concatenate(part) for part in zip(*predictions, strict=True)]
    accuracy = [f"{np.mean(z == y):.3f}" for z in both]
    options = {"sensitive_features": x, "kernel": degree, "subset": "positive"}
    return [str(degree), *accuracy, *(f"{gedi(y, z, **options):.3f}" for z in both)]


if __name__ == "__main__":
    main()
