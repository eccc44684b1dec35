"""Errors and warnings of the library; each message is built here, once.

Each error derives from the builtin that a caller would expect, so that ``except ValueError``
keeps working, and can be pickled, since joblib sends errors between processes.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from weakref import WeakKeyDictionary

__all__ = [
    "AttributeRangeWarning",
    "AttributeScaleWarning",
    "CertificateNotIssuedWarning",
    "ConstraintNotMetWarning",
    "EmptyBoundWarning",
    "FewRowsWarning",
    "IllConditionedKernelWarning",
    "InfeasibleProjectionError",
    "NoisyReferenceWarning",
    "RankDeficientKernelError",
    "SolverError",
    "SolverLicenceError",
    "SolverLimitError",
    "TooManyGroupsError",
    "UnseenDependenceWarning",
    "UnseenLevelError",
    "ZeroReferenceError",
]

# Frames of these packages lie between the warning and the line that the user can change.
_SKIPPED_PACKAGES = {"gedi_sklearn", "sklearn", "joblib", "functools"}
_IS_SILENT = ContextVar("is_silent", default=False)
# By search, or by the estimator of a cross-validation: kinds of warnings, and where they pointed.
_SAID_IN_SEARCHES: WeakKeyDictionary[object, set[tuple]] = WeakKeyDictionary()


@contextmanager
def silent() -> Iterator[None]:
    """Keep :func:`warn_caller` silent, in this thread: of parts of what warns as a whole."""
    token = _IS_SILENT.set(True)
    try:
        yield
    finally:
        _IS_SILENT.reset(token)


def warn_caller(message: str | Warning, category: type[Warning] = UserWarning) -> None:
    """Warn at the user's line, however many decorators, searches or folds lie between.

    A fixed stack level would point at scikit-learn's decorators, and since Python shows equal
    warnings of a line only once, a second fit elsewhere would stay silent.
    """
    if _IS_SILENT.get():
        return
    frame, level, search = sys._getframe(1), 2, None
    while frame.f_back is not None and _package(frame.f_globals) in _SKIPPED_PACKAGES:
        if ".model_selection." in str(frame.f_globals.get("__name__")):
            search = frame
        frame, level = frame.f_back, level + 1
    given = {} if search is None else search.f_locals
    owner = given.get("self", given.get("estimator"))
    if hasattr(owner, "get_params") and isinstance(message, _OF_A_VERDICT):
        # What the first fit of a search says, the others need not say again.
        said = _SAID_IN_SEARCHES.setdefault(owner, set())
        what = (type(message), frame.f_code.co_filename, frame.f_lineno)
        if what in said:
            return
        said.add(what)
    warnings.warn(message, category, stacklevel=level)


def _package(namespace: dict[str, object]) -> str:
    return str(namespace.get("__name__", "")).partition(".")[0]


class RankDeficientKernelError(ValueError):
    """The kernel's columns are linearly dependent on the given rows.

    Attributes
    ----------
    rank : int
        Number of independent columns after centring.
    is_constant : bool
        Whether no column can vary, since the attribute is constant (given `conditional_on`).

    Examples
    --------
    >>> from gedi_sklearn import gedi
    >>> gedi([1.0, 2.0, 3.0], sensitive_features=[0, 0, 1], kernel=2)
    Traceback (most recent call last):
        ...
    gedi_sklearn.exceptions.RankDeficientKernelError: the kernel of sensitive_features has 2...
    """

    rank: int = 0
    is_constant: bool = False

    @classmethod
    def from_rank(
        cls, rank: int, n_columns: int, n_distinct: int | None
    ) -> RankDeficientKernelError:
        """Build the error for a kernel with ``rank`` independent columns of ``n_columns``.

        `n_distinct` is the number of distinct values of the attribute, None where it is not known.
        """
        if n_distinct is None:
            reason = (
                "the rows so far have too few distinct values of the attribute. Lower the degree."
            )
        elif n_distinct <= n_columns:
            reason = (
                f"the attribute takes {n_distinct} distinct value(s). A polynomial kernel needs "
                "more distinct values than its degree: lower the degree, or pass a kernel whose "
                "columns are independent."
            )
        else:
            reason = (
                f"on the {n_distinct} distinct values of the attribute, columns are constant or "
                "sums of others. If columns add up to 1, leave one out "
                "(include_bias=False, drop='first'); for a polynomial, lower the degree: rounding "
                "makes high powers indistinguishable."
            )
        error = cls(
            f"the kernel of sensitive_features has {n_columns} column(s) but only {rank} of them "
            f"are linearly independent (besides the constant): {reason}"
        )
        error.rank, error.is_constant = rank, rank == 0 and n_distinct in (None, 1)
        return error


class UnseenLevelError(ValueError):
    """New rows have a level of the attribute that no row of the fit has.

    Examples
    --------
    >>> from gedi_sklearn import DidiConstraint, ProjectedRegressor
    >>> X, y, team = [[1], [2]] * 10, [1.0, 2.0] * 9 + [4.0, 5.0], ["a"] * 10 + ["b"] * 10
    >>> model = ProjectedRegressor(constraint=DidiConstraint()).fit(X, y, sensitive_features=team)
    >>> model.predict([[2]], sensitive_features=["c"])
    Traceback (most recent call last):
        ...
    gedi_sklearn.exceptions.UnseenLevelError: sensitive_features holds groups not seen before...
    """

    @classmethod
    def from_levels(
        cls, held: str, unknown: Sequence[str], known: Sequence[str]
    ) -> UnseenLevelError:
        """Build the error for what is held in new rows; of many levels a few are named."""
        new, old = (
            f"{list(own[:5])}{'' if len(own) <= 5 else f' and {len(own) - 5} more'}"
            for own in (unknown, known)
        )
        return cls(f"{held} not seen before: {new}. Those of the fit are {old}.")


class ZeroReferenceError(ValueError):
    """A threshold is a share of the indicator of y, and y does not depend on the attribute.

    Examples
    --------
    >>> from gedi_sklearn import CoarseConstraint, project_targets
    >>> x, y = [-1.0, 0.0, 1.0], [1.0, 0.0, 1.0]
    >>> project_targets(y, sensitive_features=x, constraint=CoarseConstraint(0.2))
    Traceback (most recent call last):
        ...
    gedi_sklearn.exceptions.ZeroReferenceError: relative=True makes threshold a share of...
    """


class TooManyGroupsError(ValueError):
    """The request needs a matrix of rows by groups that is too large to store or to use.

    Examples
    --------
    >>> import numpy as np
    >>> from gedi_sklearn import gedi
    >>> rng = np.random.default_rng(0)
    >>> postcode = np.char.add("p", rng.integers(0, 9000, 20_000).astype(str))
    >>> y, income = rng.normal(size=(2, 20_000))
    >>> gedi(y, sensitive_features=postcode, conditional_on=income)
    Traceback (most recent call last):
        ...
    gedi_sklearn.exceptions.TooManyGroupsError: an attribute of...
    """

    @classmethod
    def from_numbers(cls, n_rows: int, n_groups: int) -> TooManyGroupsError:
        """Build the error for the indicators of ``n_groups`` groups on ``n_rows`` rows."""
        return cls(
            f"an attribute of {n_groups} groups needs a matrix of {n_rows} x {n_groups} numbers "
            "here. Pool rare groups, or bin the attribute (`quantile_bin_edges`). So many groups "
            "are possible in values, tests of independence, limits and the accumulator, without "
            "clusters (`groups`) and `conditional_on`; and under DidiConstraint for real targets "
            "at squared error, in `project_targets`, `ProjectedRegressor` and Moving (not dual) "
            "Targets, without `target_bounds`, `confidence` and other constraints, and with "
            "`sensitive_at_predict`."
        )


class InfeasibleProjectionError(ValueError):
    """No targets satisfy the constraint.

    Examples
    --------
    >>> from gedi_sklearn import CoarseConstraint, project_targets
    >>> constraint = CoarseConstraint(0.0, relative=False)
    >>> project_targets(["a", "b", "b"], sensitive_features=[0.0, 0.0, 1.0], constraint=constraint)
    Traceback (most recent call last):
        ...
    gedi_sklearn.exceptions.InfeasibleProjectionError: no targets satisfy the coarse constraint...
    """

    @classmethod
    def from_problem(
        cls,
        *,
        constraint: str,
        n_rows: int,
        n_columns: int,
        threshold: object,
        slack: float,
        smallest_slack: float | None = None,
    ) -> InfeasibleProjectionError:
        """Build the error for a projection of ``n_rows`` rows on a kernel of ``n_columns``."""
        hint = "" if smallest_slack is None else f" slack={smallest_slack:.3g} is feasible."
        return cls(
            f"no targets satisfy the {constraint} constraint: threshold={threshold} (absolute), "
            f"slack={slack:g}, {n_columns} kernel column(s), {n_rows} rows of positive weight, at "
            "least one row of each class. Raise `threshold` or `slack`, lower the degree, or use "
            f"more rows.{hint}"
        )

    @classmethod
    def from_support(
        cls, *, n_positive: int, constraint: str, n_rows: int, threshold: object, **_: object
    ) -> InfeasibleProjectionError:
        """Build the error for targets of loss='kl', which are 0 where the given ones are."""
        return cls(
            f"no targets satisfy the {constraint} constraint: threshold={threshold} (absolute), "
            f"and loss='kl' keeps targets of 0, which {n_rows - n_positive} of {n_rows} rows have. "
            "Pass positive predictions as `y_pred` as well, raise `threshold`, or use "
            "loss='squared_error'."
        )


class SolverError(RuntimeError):
    """A solver is missing, refused its licence, or ended without a solution.

    Examples
    --------
    Those of a licence and of a limit are caught with it.

    >>> from gedi_sklearn.exceptions import SolverError, SolverLicenceError, SolverLimitError
    >>> issubclass(SolverLicenceError, SolverError), issubclass(SolverLimitError, SolverError)
    (True, True)
    """

    @classmethod
    def from_status(cls, solver: str, status: object) -> SolverError:
        """Build the error for a status that means neither a solution nor infeasibility."""
        if solver == "exact":  # no other one solves these
            advice = (
                "Constraints on nearly the same functions of an attribute take long to meet "
                "together: use fewer of them, fewer kernel columns or larger thresholds."
            )
        else:
            advice = "Try the other solver ('gurobi' or 'highs'), or check the solver's `params`."
        ended = f"solver={solver!r} ended with status {status!r} and no usable solution"
        return cls(f"{ended}. {advice}")

    @classmethod
    def from_not_integral(cls, solver: str, worst: float) -> SolverError:
        """Build the error for a solution that is not integral, against the solver's claim."""
        return cls(
            f"solver={solver!r} returned a count that is {worst:.2g} away from an integer. "
            "Tighten the solver's integrality tolerance in the solver's `params`, or use the other "
            "solver."
        )


class SolverLicenceError(SolverError):
    """Gurobi's licence is missing, expired, taken, or too small for the model.

    Examples
    --------
    Without a usable licence HiGHS can take Gurobi's place.

    >>> import warnings
    >>> from gedi_sklearn import CoarseConstraint, project_targets
    >>> from gedi_sklearn.exceptions import SolverLicenceError
    >>> x = [1.0, 2.0, 3.0]
    >>> how = {"sensitive_features": x, "constraint": CoarseConstraint()}
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore")  # of the licence that comes with pip
    ...     try:
    ...         result = project_targets(x, solver="gurobi", **how)
    ...     except SolverLicenceError:
    ...         result = project_targets(x, solver="highs", **how)
    >>> result.satisfied
    True
    """

    @classmethod
    def from_licence(cls, detail: str) -> SolverLicenceError:
        """Build the error for a Gurobi licence that cannot be used."""
        return cls(
            f"solver='gurobi' found no usable licence: {detail}. Configure a licence "
            "(GRB_LICENSE_FILE, or WLS keys in the solver's `params`), or use solver='highs'."
        )

    @classmethod
    def from_size(cls, n_variables: int, n_rows: int, detail: str) -> SolverLicenceError:
        """Build the error for a model that is larger than the licence allows."""
        return cls(
            f"a model of {n_variables} variables and {n_rows} constraints is larger than the "
            f"Gurobi licence at hand allows ({detail}; the licence that comes with pip stops at "
            "2,000 of each, 200 variables with a quadratic objective). Configure a full licence "
            "(GRB_LICENSE_FILE, or WLS keys in the solver's `params`), or use solver='highs'."
        )


class SolverLimitError(SolverError):
    """The time limit was reached before real targets were found.

    Examples
    --------
    >>> import numpy as np
    >>> from gedi_sklearn import FineConstraint, Solver, project_targets
    >>> x, y = np.linspace(-1, 1, 100), np.random.default_rng(0).normal(size=100)
    >>> project_targets(
    ...     y,
    ...     sensitive_features=x,
    ...     constraint=FineConstraint(kernel=3),
    ...     target_bounds=(-9, 9),
    ...     solver=Solver(time_limit=1e-9),
    ... )
    Traceback (most recent call last):
        ...
    gedi_sklearn.exceptions.SolverLimitError: solver=...
    """

    @classmethod
    def from_limit(
        cls,
        *,
        solver: str,
        status: str,
        constraint: str,
        n_rows: int,
        n_columns: int,
        threshold: object,
        slack: float,
    ) -> SolverLimitError:
        """Build the error for a limit that left no incumbent."""
        return cls(
            f"solver={solver!r} reached its {status.replace('_', ' ')} without a solution of the "
            f"{constraint} constraint: threshold={threshold} (absolute), slack={slack:g}, "
            f"{n_columns} kernel column(s), {n_rows} rows. Raise `time_limit` (or the limit in "
            "the solver's `params`), `slack` or `threshold`, or lower the degree."
        )


class ConstraintNotMetWarning(UserWarning):
    """Predictions for the training rows, or projected classes, violate the constraint.

    Examples
    --------
    A filter of the standard library makes it an error, or silences it.

    >>> import warnings
    >>> import numpy as np
    >>> from sklearn.frozen import FrozenEstimator
    >>> from sklearn.linear_model import LinearRegression
    >>> from gedi_sklearn import MovingTargetsRegressor
    >>> from gedi_sklearn.exceptions import ConstraintNotMetWarning
    >>> X, y = np.arange(100.0)[:, None], np.arange(100.0)
    >>> frozen = FrozenEstimator(LinearRegression().fit(X, y))  # learns nothing from its targets
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("error", ConstraintNotMetWarning)
    ...     MovingTargetsRegressor(frozen, sensitive_columns=0).fit(X, y)
    Traceback (most recent call last):
        ...
    gedi_sklearn.exceptions.ConstraintNotMetWarning: ...
    """

    @classmethod
    def from_size(
        cls, *, size: float, low: float, bound: float, what_to_do: str, reason: str
    ) -> ConstraintNotMetWarning:
        """Build the warning for a bounded size, with its lower confidence limit."""
        if bound > 0:
            measured = (
                f"at {size / bound:.3g} times the bound, which is more than chance (at least "
                f"{low / bound:.3g} times with 95 % confidence)"
            )
        else:
            measured = f"at {size:.3g} (at least {low:.3g} with 95 % confidence), the bound is 0"
        return cls(
            f"{what_to_do}: the predictions for the training rows do not meet the constraint. They "
            f"are {measured}. {reason}"
        )

    @classmethod
    def from_closest(cls, violation: float) -> ConstraintNotMetWarning:
        """Build the warning for projected classes that miss the constraint."""
        return cls(
            "Raise `threshold`, `slack` or `time_limit`, lower the degree, or use more rows: no "
            "class labels that satisfy the constraint were found, and there may be none. The "
            f"targets are the closest ones found, which miss it by {violation:.2g}."
        )

    @classmethod
    def from_new_rows(cls, ratio: float, low: float, bound: float) -> ConstraintNotMetWarning:
        """Build the warning for predictions of rows that a model has not seen.

        `bound` is 1 where the numbers are multiples of it, else 0.
        """
        measured = f"{ratio:.3g} times the bound (at least {low:.3g} with 95 % confidence)"
        if bound == 0:
            measured = f"{ratio:.3g} (at least {low:.3g} with 95 % confidence), the bound is 0"
        return cls(
            "Use out-of-fold predictions, cv='oob' or an integer, a smaller `threshold`, or more "
            "rows: the constraint is not met on new rows. Predictions for rows that the model has "
            f"not seen are at {measured}."
        )


class EmptyBoundWarning(UserWarning):
    """A bound on labels that labels so rare satisfy however they are arranged.

    Examples
    --------
    A filter of the standard library makes it an error, or silences it.

    >>> import warnings
    >>> import numpy as np
    >>> from sklearn.linear_model import LogisticRegression
    >>> from gedi_sklearn import ProjectedClassifier
    >>> from gedi_sklearn.exceptions import EmptyBoundWarning
    >>> rng = np.random.default_rng(0)
    >>> X, y = rng.normal(size=(2000, 2)), rng.random(2000) < 0.01
    >>> model = ProjectedClassifier(LogisticRegression(), sensitive_columns=0)
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("error", EmptyBoundWarning)
    ...     model.fit(X, y.astype(int))
    Traceback (most recent call last):
        ...
    gedi_sklearn.exceptions.EmptyBoundWarning: Bound the score instead, on='probabilities'...
    """

    @classmethod
    def from_labels(cls, words: str, score: float | None) -> EmptyBoundWarning:
        """Build the warning for labels in words, with the share that the score keeps."""
        kept = "" if score is None else f", and the score keeps {score:.0%} of the indicator of y"
        return cls(
            "Bound the score instead, on='probabilities' (for two classes, in ProjectedClassifier "
            f"and ConstrainedBoostingClassifier): the bound on labels has no effect, since "
            f"{words}. Any arrangement of so few labels meets it{kept}."
        )


class UnseenDependenceWarning(UserWarning):
    """The constraint misses part of the dependence: its kernel does not follow the shape.

    Examples
    --------
    A filter of the standard library makes it an error, or silences it.

    >>> import warnings
    >>> import numpy as np
    >>> from gedi_sklearn import CoarseConstraint, project_targets
    >>> from gedi_sklearn.exceptions import UnseenDependenceWarning
    >>> x = np.linspace(-1, 1, 600)
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("error", UnseenDependenceWarning)
    ...     project_targets(x + 2 * x**2, sensitive_features=x, constraint=CoarseConstraint())
    Traceback (most recent call last):
        ...
    gedi_sklearn.exceptions.UnseenDependenceWarning: Use DependenceConstraint...
    """

    @classmethod
    def from_share(
        cls, name: str, share: float, low: float, asked: float
    ) -> UnseenDependenceWarning:
        """Build the warning for a share of the explained deviation of y."""
        return cls(
            "Use DependenceConstraint (with a SplineKernel of more knots, if it is that already), "
            f"or a higher degree: the kernel misses part of the dependence on {name}. {share:.0%} "
            f"of it remains (at least {low:.0%} with 95 % confidence), the bound is {asked:.0%}."
        )


class NoisyReferenceWarning(UserWarning):
    """A relative threshold is a share of an indicator that cannot be told from chance.

    Examples
    --------
    A filter of the standard library makes it an error, or silences it.

    >>> import warnings
    >>> import numpy as np
    >>> from gedi_sklearn import CoarseConstraint, project_targets
    >>> from gedi_sklearn.exceptions import NoisyReferenceWarning
    >>> x, y = np.linspace(-1, 1, 600), np.random.default_rng(0).normal(size=600)
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("error", NoisyReferenceWarning)
    ...     project_targets(y, sensitive_features=x, constraint=CoarseConstraint())
    Traceback (most recent call last):
        ...
    gedi_sklearn.exceptions.NoisyReferenceWarning: Use an absolute threshold, relative=False...
    """

    @classmethod
    def from_p_value(cls, p_value: float) -> NoisyReferenceWarning:
        """Build the warning for the F test of y on the kernel of the reference."""
        return cls(
            "Use an absolute threshold, relative=False; DependenceConstraint, whose reference has "
            "its own kernel; or relative=<degree>, a degree at which y depends on the attribute: "
            "`threshold` is a share of an indicator of y that cannot be told from chance (F test, "
            f"p = {p_value:.2g})."
        )


# What a fit says of its constraint: advice, then what was measured.
_OF_A_VERDICT = (
    ConstraintNotMetWarning,
    EmptyBoundWarning,
    UnseenDependenceWarning,
    NoisyReferenceWarning,
)


class FewRowsWarning(UserWarning):
    """A confidence limit rests on few rows.

    Examples
    --------
    A filter of the standard library makes it an error, or silences it.

    >>> import warnings
    >>> from gedi_sklearn.exceptions import FewRowsWarning
    >>> from gedi_sklearn.metrics import gedi_inference
    >>> team = ["a"] * 98 + ["b"] * 2
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("error", FewRowsWarning)
    ...     gedi_inference(list(range(100)), sensitive_features=team).upper
    Traceback (most recent call last):
        ...
    gedi_sklearn.exceptions.FewRowsWarning: `upper` rests on few rows...
    """

    @classmethod
    def from_place(cls, what: str, place: str) -> FewRowsWarning:
        """Build the warning for a limit, with the place that most of its error comes from."""
        return cls(
            f"`{what}` rests on few rows: {place}. It is wide for that reason, and infinite where "
            "one row or group alone determines a coefficient. Merge rare levels, use a kernel with "
            "fewer columns, or use more rows."
        )

    @classmethod
    def from_sums(cls, place: str, least: int) -> FewRowsWarning:
        """Build the warning for the limit of an accumulator."""
        return cls(
            f"`upper` of an accumulator may be too low: {place}, and below {least} it holds less "
            "often than its confidence states. Use `gedi_inference` on the rows themselves, whose "
            "limit allows for few and skewed rows, or merge rare levels."
        )


class CertificateNotIssuedWarning(UserWarning):
    """No correction has an upper confidence limit within the bound.

    Examples
    --------
    A filter of the standard library makes it an error, or silences it.

    >>> import warnings
    >>> import numpy as np
    >>> from gedi_sklearn import ProjectedRegressor
    >>> from gedi_sklearn.exceptions import CertificateNotIssuedWarning
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(60, 1))
    >>> y = X[:, 0] + rng.normal(size=60)
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("error", CertificateNotIssuedWarning)
    ...     ProjectedRegressor(sensitive_columns=0, confidence=0.99).fit(X, y)
    Traceback (most recent call last):
        ...
    gedi_sklearn.exceptions.CertificateNotIssuedWarning: no certificate can be issued...
    """

    @classmethod
    def from_labels(cls, confidence: float, words: str) -> CertificateNotIssuedWarning:
        """Build the warning for labels, in words, that could not exceed the bound."""
        return cls(
            f"no certificate can be issued: the bound on labels has no effect, since {words}. "
            f"Bound the score, on='probabilities', for a promise with {confidence:.0%} confidence."
        )

    @classmethod
    def from_limit(
        cls, confidence: float, ratio: float, upper: float, bound: float, few: str = ""
    ) -> CertificateNotIssuedWarning:
        """Build the warning for the limit of the strictest correction, ``ratio`` times the bound.

        The ratio is infinite where the rows are too few for any; `few` names a place with few.
        """
        if ratio < float("inf"):
            smallest = (
                f"the smallest bound that can be promised is {upper:.4g}, {ratio:.3g} times the "
                f"one that was asked for ({bound:.4g})."
            )
            smallest += f" The limit rests on few rows: {few}." if few else ""
        elif few:
            smallest = f"no limit is finite: {few}."
        else:
            smallest = (
                "parts of the rows do not determine a correction, or leave no degree of freedom."
            )
        return cls(
            f"no certificate can be issued: with {confidence:.0%} confidence, {smallest} "
            "The predictions are corrected as without `confidence`. Use a larger `threshold`, more "
            "rows, a kernel of fewer columns, or less confidence."
        )


class IllConditionedKernelWarning(UserWarning):
    """Rounding errors may have reached the leading digits of a coefficient.

    Examples
    --------
    A filter of the standard library makes it an error, or silences it.

    >>> import warnings
    >>> import numpy as np
    >>> from gedi_sklearn.exceptions import IllConditionedKernelWarning
    >>> from gedi_sklearn import PolynomialKernel, gedi
    >>> x = np.r_[np.zeros(100), 1000 + np.random.default_rng(0).normal(size=700)]
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("error", IllConditionedKernelWarning)
    ...     gedi(x**2, sensitive_features=x, kernel=PolynomialKernel(5, standardize=True))
    Traceback (most recent call last):
        ...
    gedi_sklearn.exceptions.IllConditionedKernelWarning: the coefficients carry an estimated...
    """

    @classmethod
    def from_error(cls, relative_error: float) -> IllConditionedKernelWarning:
        """Build the warning for an estimated relative rounding error."""
        return cls(
            "the coefficients in the units of sensitive_features carry an estimated relative "
            f"rounding error of {relative_error:.1g}: the attribute's mean is far from 0 in units "
            "of its standard deviation. Use PolynomialKernel(degree, standardize=True), or "
            "subtract a reference value from the attribute."
        )

    @classmethod
    def from_dependence(cls, relative_error: float) -> IllConditionedKernelWarning:
        """Build the warning for columns that the rows hardly tell apart."""
        return cls(
            "the coefficients carry an estimated relative rounding error of "
            f"{relative_error:.1g}: the kernel's columns are nearly dependent on these rows, as "
            "an outlier or distant clusters in sensitive_features make them. Lower the degree, or "
            "transform the attribute."
        )

    @classmethod
    def from_reference(cls, condition: float) -> IllConditionedKernelWarning:
        """Build the warning for rows unlike those that fixed the scale of a kernel."""
        return cls(
            f"the rows are so unlike the reference that their sums have lost digits (condition "
            f"{condition:.1g}). Pass reference=, values over the whole range of "
            "sensitive_features."
        )

    @classmethod
    def from_violation(cls, violation: float) -> IllConditionedKernelWarning:
        """Build the warning for targets that miss their constraint by more than rounding."""
        return cls(
            f"the projected targets miss the constraint by {violation:.2g}: the kernel's columns "
            "are nearly dependent on these rows, as an outlier in sensitive_features makes them. "
            "Lower the degree, or transform the attribute."
        )

    @classmethod
    def from_gap(cls, gap: float) -> IllConditionedKernelWarning:
        """Build the warning for targets that rounding keeps from a proof of optimality."""
        return cls(
            f"the projected targets are proven to be within a gap of {gap:.2g} of the nearest ones "
            "only: the attribute's mean is far from 0 in units of its standard deviation. Use "
            "PolynomialKernel(degree, standardize=True), or subtract a reference value from the "
            "attribute."
        )


class AttributeScaleWarning(UserWarning):
    """The indicator, or a bound on it, depends on the unit of an attribute.

    Examples
    --------
    A filter of the standard library makes it an error, or silences it.

    >>> import warnings
    >>> import numpy as np
    >>> from gedi_sklearn import gedi
    >>> from gedi_sklearn.exceptions import AttributeScaleWarning
    >>> year = np.arange(1950.0, 2010.0)
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("error", AttributeScaleWarning)
    ...     gedi(year, sensitive_features=year, kernel=3)
    Traceback (most recent call last):
        ...
    gedi_sklearn.exceptions.AttributeScaleWarning: sensitive_features has mean 1.98e+03...
    """

    @classmethod
    def from_moments(cls, mean: float, deviation: float, degree: int) -> AttributeScaleWarning:
        """Build the warning for an attribute in an unfavourable unit."""
        return cls(
            f"sensitive_features has mean {mean:.3g} and standard deviation {deviation:.3g}; at "
            f"degree {degree} the value of the indicator depends on that unit and origin. Use "
            "PolynomialKernel(degree, standardize=True) to make it independent of both."
        )

    @classmethod
    def from_unlike_units(cls, deviations: list[float]) -> AttributeScaleWarning:
        """Build the warning for one bound on the coefficients of attributes in unlike units."""
        shown = ", ".join(f"{deviation:.3g}" for deviation in deviations)
        each = ", ".join(["CoarseConstraint()"] * len(deviations))
        return cls(
            f"threshold bounds the sum of the coefficients of {len(deviations)} attributes, whose "
            f"standard deviations are {shown}. A coefficient is small where the deviation is "
            "large, so that attribute hardly counts. Give each its own bound, "
            f"constraint=[{each}], or use PolynomialKernel(degree, standardize=True)."
        )


class AttributeRangeWarning(UserWarning):
    """New rows have values of the attribute outside the range of the training rows.

    Examples
    --------
    A filter of the standard library makes it an error, or silences it.

    >>> import warnings
    >>> import numpy as np
    >>> from gedi_sklearn import ProjectedRegressor
    >>> from gedi_sklearn.exceptions import AttributeRangeWarning
    >>> X, y = np.arange(100.0)[:, None], np.arange(100.0)
    >>> model = ProjectedRegressor(sensitive_columns=0).fit(X, y)
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("error", AttributeRangeWarning)
    ...     model.predict([[40.0], [140.0]])
    Traceback (most recent call last):
        ...
    gedi_sklearn.exceptions.AttributeRangeWarning: 1 of 2 rows (50.0%)...
    """

    @classmethod
    def from_rows(
        cls, n_beyond: int, n_rows: int, low: float, high: float
    ) -> AttributeRangeWarning:
        """Build the warning for rows outside the range of an attribute."""
        return cls(
            f"{n_beyond} of {n_rows} rows ({n_beyond / n_rows:.1%}) have sensitive_features "
            f"outside the range of the fit, [{low:g}, {high:g}]. They are corrected like the "
            "nearest value of that range."
        )

    @classmethod
    def from_reference(cls, low: float, high: float) -> AttributeRangeWarning:
        """Build the warning for rows outside the range of what fixed a kernel's knots."""
        return cls(
            f"more than a tenth of the rows of a chunk lie outside the range of the reference, "
            f"[{low:g}, {high:g}], where knots and periods end: dependence there is not measured. "
            "Pass reference=, values over the whole range of sensitive_features."
        )
