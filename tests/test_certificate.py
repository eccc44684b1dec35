"""Certificates: what they promise, when they are issued, and how often they hold."""

import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.linear_model import LinearRegression

from benchmarks import certificates
from benchmarks.certificates import CELLS, is_below, simulate
from gedi_sklearn import (
    CoarseConstraint,
    DependenceConstraint,
    DidiConstraint,
    FineConstraint,
    ProjectedClassifier,
    ProjectedRegressor,
)
from gedi_sklearn._certificate import issue_certificate
from gedi_sklearn.exceptions import CertificateNotIssuedWarning
from gedi_sklearn.metrics import gedi, gedi_inference
from gedi_sklearn.model_selection import tradeoff_curve
from gedi_sklearn.projection import Projection


def draw(n=800, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.uniform(-1.7, 1.7, n)
    X = np.c_[x, x + 0.5 * rng.normal(size=n), rng.normal(size=n)]
    return X, X.sum(axis=1) + 0.5 * rng.normal(size=n)


def on_labels(y):
    return (y > 0).astype(int)


BLIND = {
    "drop_sensitive": True,
    "sensitive_at_predict": False,
    "attribute_estimator": LinearRegression(),
}
MODELS = {
    "real": ProjectedRegressor(constraint=CoarseConstraint(0.3)),
    "real, sd": ProjectedRegressor(constraint=DependenceConstraint()),
    "real, bounds": ProjectedRegressor(constraint=CoarseConstraint(0.3), target_bounds=(-9, 9)),
    "real, blind": ProjectedRegressor(constraint=CoarseConstraint(0.3), **BLIND),
    "real, list": ProjectedRegressor(constraint=[CoarseConstraint(0.4), DidiConstraint(0.4)]),
    "classes": ProjectedClassifier(constraint=CoarseConstraint(0.4)),
    "classes, sd": ProjectedClassifier(constraint=DependenceConstraint(0.4, kernel=1)),
    "classes, blind": ProjectedClassifier(constraint=CoarseConstraint(0.5), **BLIND),
    "probabilities": ProjectedClassifier(constraint=CoarseConstraint(0.3, on="probabilities")),
    "three classes": ProjectedClassifier(constraint=CoarseConstraint(0.15, relative=False)),
}


@pytest.mark.filterwarnings(
    "ignore::gedi_sklearn.exceptions.UnseenDependenceWarning",  # what is right of a slope of labels
)
@pytest.mark.parametrize("name", MODELS)
def test_a_certificate_bounds_the_limit_of_a_stricter_correction(name):
    X, y = draw(500 if name == "classes, blind" else 800)
    columns = [0]
    if name == "real, list":
        X, columns = np.c_[X[:, 0], np.digitize(X[:, 2], [0]), X[:, 1:]], [0, 1]
    if name == "three classes":
        y = np.digitize(y, [-1, 1])
    elif "classes" in name or name == "probabilities":
        y = on_labels(y)
    model = clone(MODELS[name]).set_params(confidence=0.9, sensitive_columns=columns)
    model.fit(X, y)
    found = model.certificate_
    assert found.upper <= found.bound
    assert 0 < found.threshold < found.bound
    assert found.bound in np.ravel(model.threshold_)
    assert (found.confidence, found.n_rows, found.n_folds) == (0.9, len(y), 3)
    # The targets meet the stricter threshold, and the verdict is on the one that was promised.
    share = found.threshold / found.bound
    assert model.verdict_.training.value <= share + 1e-9
    assert model.verdict_.new_rows.value < 1
    if name in ("real", "real, sd"):
        assert model.verdict_.training.value == pytest.approx(share)
        assert found.upper == pytest.approx(found.bound, rel=1e-4)
    again = pickle.loads(pickle.dumps(model))
    assert again.certificate_ == found
    assert f"at most {found.bound:.4g} with 90% confidence" in str(found)
    assert found._repr_html_().count("<tr>") == 5
    plain = clone(model).set_params(confidence=None).fit(X, y)
    assert plain.certificate_ is None
    np.testing.assert_array_equal(plain.threshold_, model.threshold_)
    assert plain.verdict_.training.value > model.verdict_.training.value


def test_the_limit_is_that_of_cross_fitted_corrected_predictions():
    """With the attribute and one column, all folds end at the asked indicator."""
    X, y = draw()
    model = ProjectedRegressor(
        constraint=CoarseConstraint(0.3), sensitive_columns=0, confidence=0.95
    ).fit(X, y)
    limit = gedi_inference(model.targets_, sensitive_features=X[:, 0], fitted=True).upper
    assert limit == pytest.approx(model.threshold_, rel=0.02)


@pytest.mark.parametrize("kind", ["real", "classes"])
def test_without_a_certificate_the_smallest_bound_is_said(kind):
    X, y = draw(300)
    options = {"sensitive_columns": 0, "constraint": CoarseConstraint(0.01, relative=False)}
    model = ProjectedRegressor(**options)
    if kind == "classes":
        y, model = on_labels(y), ProjectedClassifier(**options)
    asked = clone(model).set_params(confidence=0.95)
    message = r"smallest bound that can be promised is ([\d.]+), .* \(0.01\)"
    with pytest.warns(CertificateNotIssuedWarning, match=message) as record:
        asked.fit(X, y)
    assert asked.certificate_ is None
    np.testing.assert_array_equal(asked.predict(X), model.fit(X, y).predict(X))
    words = str(record[0].message)
    smallest = float(words.split("promised is ")[1].split(",")[0])
    assert words.count("with 95% confidence") == 1
    larger = asked.set_params(constraint__threshold=1.3 * smallest).fit(X, y)
    assert larger.certificate_.bound == pytest.approx(1.3 * smallest)


def test_what_cannot_be_promised_is_refused():
    X, y = draw(100)
    with pytest.raises(ValueError, match="cv='train' has none"):
        ProjectedRegressor(
            constraint=CoarseConstraint(), sensitive_columns=0, confidence=0.9, cv="train"
        ).fit(X, y)
    for model in (
        ProjectedRegressor(constraint=CoarseConstraint(0.0), sensitive_columns=0, confidence=0.9),
        ProjectedRegressor(
            sensitive_columns=0, confidence=0.9, constraint=FineConstraint(kernel=2)
        ),
    ):
        with pytest.raises(ValueError, match="a bound of 0 cannot be promised"):
            model.fit(X, y)
    free = ProjectedRegressor(
        constraint=CoarseConstraint(np.inf), sensitive_columns=0, confidence=0.9
    ).fit(X, y)
    assert free.certificate_ is None


def test_levels_are_tested_from_the_strictest_up_to_the_first_that_fails():
    X, y = draw(400)
    with Projection(
        y, sensitive_features=X[:, 0], constraint=CoarseConstraint(1.0, relative=False)
    ) as projection:
        constraint = projection.fitted_constraint_
    seen = []

    def corrected(slope):
        def at(share):
            seen.append(share)
            return slope(share) * X[:, 0] + 0.1 * np.cos(20 * X[:, 2])

        return at

    def issue(slope, is_one_event):
        seen.clear()
        return issue_certificate(
            constraint, corrected(slope), 0.95, is_one_event=is_one_event, n_folds=3
        )

    # Fails at .3, and at .3 only.
    certificate, share = issue(lambda share: 2.0 if share == 0.3 else share, is_one_event=False)
    assert (share, certificate.threshold, seen) == (0.2, 0.2, [0.05, 0.1, 0.2, 0.3])
    assert certificate.upper == pytest.approx(
        gedi_inference(corrected(lambda s: s)(0.2), sensitive_features=X[:, 0], fitted=True).upper
    )
    exact, _ = issue(lambda share: share, is_one_event=True)
    assert exact.upper == pytest.approx(1, rel=1e-4)
    assert issue(lambda share: share / 2, is_one_event=True)[1] == 1.0
    with pytest.warns(CertificateNotIssuedWarning, match="promised is 3.0"):
        assert issue(lambda share: 3.0, is_one_event=False)[0] is None
    assert seen == [0.05]
    with pytest.warns(CertificateNotIssuedWarning, match="do not determine a correction"):
        nothing, _ = issue_certificate(
            constraint, lambda share: None, 0.95, is_one_event=False, n_folds=3
        )
    assert nothing is None


def test_weights_covariates_and_curves():
    X, y = draw()
    weight = np.random.default_rng(1).integers(0, 3, len(y)).astype(float)
    model = ProjectedRegressor(
        constraint=CoarseConstraint(0.3), sensitive_columns=0, confidence=0.9
    )
    model.fit(X, y, sample_weight=weight)
    assert model.certificate_.n_rows == (weight > 0).sum()
    left = gedi(model.targets_, sensitive_features=X[:, 0], sample_weight=weight)
    assert left == pytest.approx(model.certificate_.threshold)
    beside = clone(model).set_params(conditional_on=2).fit(X, y)
    left = gedi(beside.targets_, sensitive_features=X[:, 0], conditional_on=X[:, 2])
    assert left == pytest.approx(beside.certificate_.threshold)
    curve = tradeoff_curve(model, X, y, thresholds=[0.8, 0.4], cv=2)
    assert curve.n_fits == 4
    assert (curve.upper > curve.gedi).all()


def test_the_command_takes_up_where_it_ended(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(certificates, "POPULATION", 3000)
    certificates.load.cache_clear()
    path = tmp_path / "certificates.csv"
    options = ["--output", str(tmp_path), "--samples", "2", "--rows", "500", "--degree", "1"]
    options += ["--population", "real targets", "--norm", "l1", "--attribute", "known"]
    certificates.main(options)
    assert "| real targets | 500 | 1 | l1 | known | 2 |" in capsys.readouterr().out
    first = path.read_bytes()
    certificates.main(options)
    assert path.read_bytes() == first
    certificates.load.cache_clear()


@pytest.mark.slow
@pytest.mark.parametrize("position", [0, 6, 12, 13, 24])
def test_certificates_hold(position):
    cell, n_samples = CELLS[position], 30
    found = simulate(cell, n_samples)
    print(cell, found)
    issued = round(n_samples * float(found["issued"]))
    assert issued > 0.5 * n_samples
    assert not is_below(round(issued * float(found["held"])), issued)
    assert float(found["held_plain"]) < float(found["held"])
