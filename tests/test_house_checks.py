"""The library's own checks, over every public estimator that is fitted under a constraint."""

import pytest
from sklearn.utils._param_validation import (
    InvalidParameterError,
    validate_parameter_constraints,
)

import gedi_sklearn
from gedi_sklearn import CoarseConstraint
from gedi_sklearn.constraints import Constraint
from tests.estimator_checks import (
    HOUSE_CHECKS,
    constrained_estimators,
    public_estimators,
    variants,
)

# The notice of the licence that comes with pip, said once a process: tests may use that licence.
pytestmark = [
    pytest.mark.filterwarnings("ignore:Gurobi runs on the size-limited:UserWarning"),
    # On few rows a threshold on scores hits no small indicator.
    pytest.mark.filterwarnings("ignore:the corrected labels miss the constraint:UserWarning"),
    pytest.mark.filterwarnings("ignore:the search for multipliers did not converge"),
    # The rows are sorted by the attribute, so folds are ranges of it.
    pytest.mark.filterwarnings("ignore::gedi_sklearn.exceptions.AttributeRangeWarning"),
]


@pytest.mark.parametrize("check", HOUSE_CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize("estimator", variants(constrained_estimators()), ids=repr)
def test_house_checks(estimator, check):
    check(estimator)


@pytest.mark.parametrize(
    "owner",
    [*constrained_estimators(), *Constraint.__subclasses__(), *CoarseConstraint.__subclasses__()],
)
def test_defaults_lie_in_the_declared_ranges(owner):
    # Where they are, they are not checked again.
    given = owner().get_params(deep=False)
    validate_parameter_constraints(owner._parameter_constraints, given, owner.__name__)


class Halved(gedi_sklearn.ProjectedRegressor):
    """A caller's class, with a default out of its range."""

    def __init__(self, constraint=None, *, cv=1):
        super().__init__(constraint=constraint, cv=cv)


def test_a_default_of_a_class_of_the_callers_is_checked():
    model = Halved(CoarseConstraint(0.5))
    with pytest.raises(InvalidParameterError, match="'cv' parameter of Halved"):
        model.fit([[0.0], [1.0]], [0.0, 1.0], sensitive_features=[0.0, 1.0])


def test_estimators_are_discovered():
    assert gedi_sklearn.PolynomialKernel in public_estimators()
    assert {gedi_sklearn.MovingTargetsRegressor, gedi_sklearn.MovingTargetsClassifier} <= set(
        constrained_estimators()
    )


def test_every_house_check_is_run():
    assert len(HOUSE_CHECKS) > 10
