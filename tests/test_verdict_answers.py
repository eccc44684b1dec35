"""The four answers of a verdict, bounds that labels cannot exceed, and what predict returns."""

import itertools
import re
import warnings
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.svm import LinearSVC

from gedi_sklearn import (
    CoarseConstraint,
    ConstrainedBoostingClassifier,
    DependenceConstraint,
    DidiConstraint,
    FineConstraint,
    MovingTargetsClassifier,
    ProjectedClassifier,
    ProjectedRegressor,
    project_targets,
)
from gedi_sklearn.constraints import fit_constraint
from gedi_sklearn.exceptions import CertificateNotIssuedWarning, EmptyBoundWarning
from gedi_sklearn.metrics import gedi
from gedi_sklearn.projection import Projection


def ratio(*numbers):
    """Return the ratio of a verdict with other numbers: value, low, high and perhaps the bound."""
    x = np.linspace(-1, 1, 100)
    with Projection(x, sensitive_features=x, constraint=CoarseConstraint()) as projection:
        some = projection.verdict(x, new_rows=x).new_rows
    names = ("value", "low", "high", "bound")
    return replace(some, **dict(zip(names, numbers, strict=False)))


@pytest.mark.parametrize(
    ("numbers", "answer"),
    [
        ((2.0, 1.1, 3.0), "no"),
        ((0.5, 0.2, 1.0), "yes"),
        ((0.9, 0.6, 1.412), r"about: at most 1\.42 of the bound"),
        ((0.0, 0.0, 26.0), "cannot be told"),  # C3-23: this was a yes
        ((1.2, 0.9, 1.6), "cannot be told"),
        ((0.9, np.nan, np.nan), "cannot be told"),
        ((0.01, 0.002, 0.02, 0.0), "no"),
        ((0.01, 0.0, 0.02, 0.0), "cannot be told"),
    ],
)
def test_the_answer_is_what_the_interval_allows(numbers, answer):
    found = ratio(*numbers)
    assert re.fullmatch(answer, found.answer)
    assert str(found).startswith(found.answer)


def test_rows_themselves_may_keep_a_bound_that_is_unsure_of_others():
    found = ratio(1.0, 0.0, 9.0)
    assert found.in_words(of_these=True).startswith("yes, at 1 of the bound")
    assert str(found).startswith("cannot be told")


@pytest.mark.parametrize(
    "constraint", [CoarseConstraint(0.0), FineConstraint([0.0, 0.0], kernel=2)], ids=str
)
def test_a_bound_of_0_is_not_met_by_chance(constraint):
    rng = np.random.default_rng(0)
    x = rng.uniform(-1, 1, 400)
    X, t = np.c_[x, rng.normal(size=400)], x + rng.normal(size=400)
    model = ProjectedRegressor(LinearRegression(), constraint, sensitive_columns=0).fit(X, t)
    new = model.verdict_.new_rows
    assert (new.bound, new.answer) == (0.0, "cannot be told")
    assert 0 < new.high < 1  # in units of y
    assert "training rows: yes, at 0 (the bound is 0)" in str(model.verdict_)


def test_birth_years_without_the_attribute_are_not_met():
    """C3-32: judged were corrections of another model, at 1 of the bound; predict is far off."""
    rng = np.random.default_rng(0)
    age, x = rng.uniform(20, 70, 1000), rng.normal(size=1000)
    year = 2020 - age
    X, t = np.c_[year, x, year + 8 * rng.normal(size=1000)], x + age
    model = ProjectedRegressor(
        LinearRegression(),
        CoarseConstraint(kernel=3),
        sensitive_columns=0,
        sensitive_at_predict=False,
        cv="train",
    )
    with warnings.catch_warnings(action="ignore"):
        verdict = model.fit(X, t).verdict_
        size = gedi(model.predict(X), sensitive_features=year, kernel=3)
    assert verdict.training.value == pytest.approx(1)
    assert verdict.predicted == pytest.approx(size / model.threshold_, rel=1e-3)
    assert verdict.predicted > 2
    lines = str(verdict).split("\n")
    assert lines[1].startswith("training rows: cannot be told, at 1 of the bound")
    assert re.fullmatch("predict: +at .* of the bound on the training rows", lines[2])


def test_the_p_value_of_certainty_is_not_0():
    x = np.linspace(-1, 1, 400)
    z = project_targets(x, sensitive_features=x, constraint=CoarseConstraint())
    assert "that of y: more than chance (p < 1e-15)" in str(z.verdict)


# --- labels that hardly exist


@pytest.mark.parametrize(
    "constraint",
    [
        CoarseConstraint(kernel=2, relative=False),
        FineConstraint([1.0, 1.0], kernel=2, relative=False),
        DependenceConstraint(kernel=2, relative=False),
        DidiConstraint(relative=False),
    ],
    ids=str,
)
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("weighted", [False, True])
def test_a_bound_is_empty_where_no_labels_as_rare_exceed_it(constraint, n_classes, weighted):
    """All arrangements are tried; for an L1 norm and single coefficients the reverse is true."""
    rng = np.random.default_rng(0)
    x = rng.integers(0, 3, 7) * 1.0
    x[:3] = range(3)
    labels = np.array([0, 0, 0, 0, 0, 1, 1]) if n_classes == 2 else np.array([0, 0, 0, 0, 1, 1, 2])
    weight = rng.uniform(0.5, 2, 7) if weighted else None
    fitted = fit_constraint(constraint, x[:, None], labels, weight=weight, n_classes=n_classes)
    for part in fitted.parts:
        arranged = [
            part.allowed.sizes(part.block.measure(fitted.columns(np.array(own)))[0])
            for own in set(itertools.permutations(labels.tolist()))
        ]
        # Two classes of a DIDI count twice.
        largest = np.max(arranged, axis=0) * (part.threshold / part.allowed.limits)
        largest = largest if len(largest) > 1 else float(largest[0])
        assert not part.at(largest * 0.999).is_empty(fitted.columns(labels))
        if len(part.outputs) == 1 and not isinstance(constraint, DependenceConstraint):
            assert part.at(largest * 1.001).is_empty(fitted.columns(labels))


def rare(n=4000):
    rng = np.random.default_rng(0)
    age, x = rng.uniform(20, 70, n), rng.normal(size=n)
    return np.c_[age, x], (rng.random(n) < 1 / (1 + np.exp(6 - age / 20 - 0.3 * x))).astype(int)


def test_a_bound_on_labels_that_hardly_exist_is_named():
    """C3-21: no label is 1, so every bound holds, and the score keeps the dependence."""
    X, y = rare()
    model = ProjectedClassifier(LogisticRegression(), sensitive_columns=0, confidence=0.95)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(X, y)
    assert [one.category for one in caught] == [CertificateNotIssuedWarning, EmptyBoundWarning]
    assert all("on='probabilities'" in str(one.message) for one in caught)
    assert model.certificate_ is None
    verdict = model.verdict_
    m = int(model.predict(X).sum())
    for line in ("training rows", "new rows"):
        assert re.search(f"\n{line}: +says nothing: {m} of 4000 rows are labelled 1", str(verdict))
    how = {"sensitive_features": X[:, 0], "norm": "sd", "kernel": "spline", "relative": True}
    kept = gedi(y * 1.0, model.predict_proba(X)[:, 1], **how)
    assert verdict.score == pytest.approx(kept, abs=0.05)
    assert verdict.score > 0.7
    bound = DependenceConstraint(on="probabilities")
    better = ProjectedClassifier(LogisticRegression(), bound, sensitive_columns=0).fit(X, y)
    assert better.verdict_.empty == ""
    assert better.verdict_.score == pytest.approx(0.2)


def test_a_bound_that_no_labels_exceed_is_not_their_fault():
    X, y = rare(600)
    wide = CoarseConstraint(1e6, relative=False)
    model = MovingTargetsClassifier(LogisticRegression(), wide, sensitive_columns=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        warnings.simplefilter("error", EmptyBoundWarning)
        assert model.fit(X, y).verdict_.empty == ""


def test_common_labels_have_no_empty_bound():
    X, _ = rare()
    y = (X[:, 1] + X[:, 0] / 20 > 2).astype(int)
    model = ProjectedClassifier(LogisticRegression(), sensitive_columns=0, confidence=0.9)
    assert model.fit(X, y).certificate_ is not None
    assert model.verdict_.empty == ""


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize(
    "model",
    [
        ConstrainedBoostingClassifier(n_estimators=10),
        MovingTargetsClassifier(LogisticRegression(), max_iter=1),
        MovingTargetsClassifier(LinearSVC(random_state=0), max_iter=1),
        ProjectedClassifier(LogisticRegression()),
    ],
    ids=["boosting", "probabilities", "decisions", "projected"],
)
@pytest.mark.parametrize("n_classes", [2, 3])
def test_the_score_of_every_classifier_is_in_its_verdict(model, n_classes):
    X, _ = rare(600)
    latent = X[:, 1] + X[:, 0] / 20 + np.random.default_rng(1).normal(size=600)
    y = np.digitize(latent, np.quantile(latent, np.arange(1, n_classes) / n_classes))
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    verdict = model.set_params(sensitive_columns=0).fit(X, y).verdict_
    assert 0 < verdict.score < 2
    assert re.search(f"(probabilities|decisions) {verdict.score:.0%} of y", str(verdict))


def test_rows_that_only_one_constraint_of_a_list_bounds_are_not_said_to_be_all():
    X, y = rare(600)
    bound = {"threshold": 0.5, "relative": False}
    subsets = [CoarseConstraint(**bound, subset=1), CoarseConstraint(**bound)]
    model = ProjectedClassifier(LogisticRegression(), subsets, sensitive_columns=[0, 1])
    assert model.fit(X, y).verdict_.bounded == "labels in subset 1 and labels"


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_decisions_are_scaled_by_the_rows_that_count():
    """A row of weight 0 far away made the dependence of the others look like none."""
    X, _ = rare(600)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    y = (X.sum(axis=1) + np.random.default_rng(1).normal(size=600) > 0).astype(int)
    weight = np.arange(600) % 4
    X[weight == 0, 1] *= 100
    learner = FrozenEstimator(LinearSVC(random_state=0).fit(X[weight > 0], y[weight > 0]))
    model = MovingTargetsClassifier(learner, sensitive_columns=0, max_iter=1)
    weighted = model.fit(X, y, sample_weight=weight).verdict_.score
    rows = np.repeat(np.arange(600), weight)
    assert weighted == pytest.approx(model.fit(X[rows], y[rows]).verdict_.score)


def test_every_output_says_what_it_keeps():
    """A bound on labels says little of probabilities and of the top decile."""
    X, _ = rare()
    y = (X[:, 1] + X[:, 0] / 20 > 2).astype(int)
    model = ProjectedClassifier(LogisticRegression(), sensitive_columns=["age"], cv="train")
    frame = pd.DataFrame(X, columns=["age", "skill"])
    verdict = model.fit(frame, y).verdict_
    how = {"sensitive_features": X[:, 0], "norm": "sd", "kernel": "spline"}
    proba, plain = (m.predict_proba(frame)[:, 1] for m in (model, model.estimator_))
    top, of = (gedi((s > np.quantile(s, 0.9)) * 1.0, **how) for s in (proba, plain))
    expected = [
        ("labels", gedi(y, model.predict(frame), relative=True, **how), "y"),
        ("probabilities", gedi(y * 1.0, proba, relative=True, **how), "y"),
        ("top decile", top / of, "the plain model"),
    ]
    assert [(own.name, own.of) for own in verdict.outputs] == [(n, of) for n, _, of in expected]
    values = [own.value for own in verdict.outputs]
    assert values == pytest.approx([v for _, v, _ in expected], rel=1e-2)
    assert values[0] < 0.21 < 0.25 < values[1]
    assert str(verdict).startswith("bounded:       labels, by age\n")
    for on in ("probabilities", "distribution"):
        model.set_params(constraint=DependenceConstraint(on=on)).fit(frame, y)
        assert {"distribution": "share of rows above every cut"}.get(on, on) in str(model.verdict_)


def test_without_a_plain_score_the_top_decile_is_in_points():
    X, _ = rare(600)
    y = (X[:, 1] + X[:, 0] / 20 > 2).astype(int)
    model = ConstrainedBoostingClassifier(n_estimators=20, sensitive_columns=0)
    with warnings.catch_warnings(action="ignore"):
        verdict = model.fit(X, y).verdict_
    score = model.predict_proba(X)[:, 1]
    top = (score > np.sort(score)[539]) * 1.0
    value = gedi(top, sensitive_features=X[:, 0], norm="sd", kernel="spline")
    assert verdict.outputs[-1].value == pytest.approx(value)
    assert f"top decile {100 * value:.2g} points" in str(verdict)
