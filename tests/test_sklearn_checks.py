"""scikit-learn's own checks, over every public estimator."""

import pytest
import sklearn
from sklearn.utils.estimator_checks import check_param_validation, parametrize_with_checks
from sklearn.utils.fixes import parse_version

from tests.estimator_checks import instance, public_estimators, variants

# A row of weight 2 is one binary decision that counts twice, two rows are two decisions: there
# repeated rows leave the projection more freedom than weights do, whatever `cv` is. The relaxation
# of method="dual" does not tell them apart.
_EQUIVALENCE = (
    "check_sample_weight_equivalence_on_dense_data",
    "check_sample_weight_equivalence_on_sparse_data",
)
EXPECTED_FAILURES = {
    "MovingTargetsClassifier": dict.fromkeys(
        _EQUIVALENCE, "a weighted row is one binary decision, repeated rows are several"
    ),
}

# Those of two classes only, in a version whose check makes two of three classes by the first row
# and shuffles one side: its two fits have different targets.
_TWO_CLASSES = parse_version(sklearn.__version__) < parse_version("1.7")
if _TWO_CLASSES:
    _OTHER_TARGETS = dict.fromkeys(_EQUIVALENCE, "this version's check compares other targets")
    EXPECTED_FAILURES["ProjectedClassifier"] = _OTHER_TARGETS


def expected_failures(estimator):
    name = type(estimator).__name__
    if getattr(estimator, "method", None) == "dual":
        return _OTHER_TARGETS if _TWO_CLASSES and name == "MovingTargetsClassifier" else {}
    return EXPECTED_FAILURES.get(name, {})


# On a check's few random rows a fair model may be a constant one.
@pytest.mark.filterwarnings("ignore:.*the model has collapsed:UserWarning")
@pytest.mark.filterwarnings("ignore:method='dual' did not converge")
@pytest.mark.filterwarnings("ignore:The least populated class in y:UserWarning")
@pytest.mark.filterwarnings("ignore:the corrected labels miss the constraint:UserWarning")
@pytest.mark.filterwarnings("ignore:lbfgs failed to converge:sklearn.exceptions.ConvergenceWarning")
@pytest.mark.filterwarnings("ignore:.*for no training row, though y holds them:UserWarning")
@parametrize_with_checks(variants(public_estimators()), expected_failed_checks=expected_failures)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@pytest.mark.parametrize("cls", public_estimators())
def test_parameters_are_validated(cls):
    check_param_validation(cls.__name__, instance(cls))
