"""The report: what makes it, and how it is written."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from html import escape
from importlib.metadata import version
from numbers import Integral, Real
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from .. import __version__
from .._validation import Interval, StrOptions, check_levels, check_random_state, validate_params
from ..kernels import KERNEL_CONSTRAINTS
from ..metrics import TARGET_CONSTRAINTS
from ._findings import Findings, adjust, find, sentences
from ._html import render
from ._table import attributes_of, check_samples, hash_of, make_table

_PACKAGES = ("numpy", "scipy", "scikit-learn")
# Of `to_dict` and what is written from it; it changes where keys or columns of a release do.
FORMAT_VERSION = 1
_PERMUTATIONS = 999


@dataclass(frozen=True)
class FairnessReport:
    """The result of :func:`fairness_report`; ``print`` puts it in words.

    Attributes
    ----------
    findings : tuple of Findings
        Of each attribute: the indicator, what is left, its inference and the curve E[ŷ | x].
    table : dict of str to list
        All indicators, as columns; see :meth:`to_frame`.
    n_rows : int
        Rows of positive weight.
    confidence : float
        Of the intervals.
    attribute_units : list of str or None
        Unit of each attribute.
    target_unit : str or None
        As given.
    about : dict of str to str
        As given; empty where nothing was.
    random_state : int or None
        As given; None where it was no integer.
    data_hash : str
        SHA-256 of targets, predictions, attributes and weights of the measured rows.
    versions : dict of str to str
        Of the packages that it was made with.

    Examples
    --------
    >>> import numpy as np
    >>> from gedi_sklearn import fairness_report
    >>> x = np.linspace(-1, 1, 100)
    >>> report = fairness_report(x + x**2, sensitive_features=x, degrees=[1], bins=[3])
    >>> report.to_frame()[["indicator", "parameter", "value"]].round(2)
         indicator parameter  value
    0         gedi         1   0.58
    1      gedi_sd         1   0.58
    2  binned_didi         3   1.65
    3          hgr       kde   0.81
    >>> report.to_dict()["findings"][0]["p_value"]
    0.001
    """

    findings: tuple[Findings, ...]
    table: dict[str, list[Any]]
    n_rows: int
    confidence: float
    attribute_units: list[str | None]
    target_unit: str | None
    about: dict[str, str]
    versions: dict[str, str]
    random_state: int | None
    data_hash: str

    def to_frame(self) -> Any:
        """Return the table of all indicators.

        Returns
        -------
        DataFrame
            One row for each indicator, with the columns

            - attribute: its name, or those of several that are measured together;
            - indicator, parameter: "gedi" and "gedi_sd" with the degree, "didi" with the number of
              groups, "binned_didi" with the number of bins used, "hgr" with the method;
            - value: of the predictions; y_true: of the original targets;
            - null_mean, null_q95: mean and 95 % quantile where the predictions do not depend on
              the attribute. A value below null_q95 is no evidence of a disparity;
            - low, high: confidence interval of the value. For HGR it is a plain bootstrap, which is
              biased upwards near 0; for the others see :func:`gedi_sklearn.metrics.gedi_inference`;
            - upper: upper confidence limit, for predictions that were not fitted on these rows; see
              :func:`gedi_sklearn.metrics.gedi_inference`.
        """
        import pandas as pd

        return pd.DataFrame(self.table)

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain values, which :mod:`json` can write; NaN is None.

        Returns
        -------
        dict
        """
        found = {
            "format_version": FORMAT_VERSION,
            **asdict(self),
            "findings": [asdict(one) | {"verdict": one.verdict} for one in self.findings],
        }
        return _plain(found)

    def to_json(self, path: str | PathLike[str] | None = None) -> str | None:
        """Return everything as JSON, or write it where a path is given.

        Parameters
        ----------
        path : str or path-like, default=None
            Where to write it.

        Returns
        -------
        str or None
            None where a path is given, as in pandas.
        """
        return _write(json.dumps(self.to_dict(), indent=1, ensure_ascii=False, default=str), path)

    def to_csv(self, path: str | PathLike[str] | None = None) -> str | None:
        """Return the table of all indicators as CSV, or write it where a path is given.

        Lines that begin with ``#`` say with which versions, seed and data it was made.

        Parameters
        ----------
        path : str or path-like, default=None
            Where to write it.

        Returns
        -------
        str or None
            None where a path is given, as in pandas.
        """
        text = io.StringIO()
        text.writelines(f"# {' '.join(line.split())}\n" for line in self._header())
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(self.table)
        writer.writerows(zip(*self.table.values(), strict=True))
        return _write(text.getvalue(), path)

    def _repr_html_(self) -> str:
        # A frame, so that the page's style is not that of the notebook.
        page = escape(self._page())
        return f'<iframe srcdoc="{page}" style="width: 100%; height: 40rem; border: 0"></iframe>'

    def __str__(self) -> str:
        lines = ["Fairness report", *self._header()]
        for found, said in self._said():
            lines += ["", found.attribute, *(f"  {sentence}" for sentence in said)]
        return "\n".join(lines)

    def to_html(self, path: str | PathLike[str] | None = None) -> str | None:
        """Return the report as one page, or write it where a path is given.

        The page is self-contained, can be read without colours, and prints on A4.

        Parameters
        ----------
        path : str or path-like, default=None
            Where to write it.

        Returns
        -------
        str or None
            None where a path is given, as in pandas.
        """
        return _write(self._page(), path)

    def _page(self) -> str:
        units = (self.attribute_units, self.target_unit)
        return render(list(self._header()), list(self._said()), self.table, units)

    def _header(self) -> Iterator[str]:
        names = ", ".join(found.attribute for found in self.findings)
        yield f"Protected attribute: {names}. Rows: {self.n_rows:,}."
        yield from (f"{name}: {said}." for name, said in self.about.items())
        yield "Made with " + ", ".join(f"{name} {own}" for name, own in self.versions.items()) + "."
        seed = "" if self.random_state is None else f"Seed {self.random_state}. "
        yield f"{seed}SHA-256 of the data {self.data_hash}."

    def _said(self) -> Iterator[tuple[Findings, list[str]]]:
        for found, unit in zip(self.findings, self.attribute_units, strict=True):
            said = list(sentences(found, unit, self.target_unit, self.confidence))
            for j, name in enumerate(self.table["attribute"]):
                if name == found.attribute and self.table["indicator"][j] == "hgr":
                    said.append(
                        f"HGR, the strongest correlation of any two functions, is "
                        f"{self.table['value'][j]:.2f} (targets: {self.table['y_true'][j]:.2f}; "
                        f"by chance up to {self.table['null_q95'][j]:.2f})."
                    )
            yield found, said


def installed_versions() -> dict[str, str]:
    """Return the versions of this library and of what it computes with."""
    # Metadata of an editable install are those of the day it was made.
    return {"gedi-sklearn": __version__, **{name: version(name) for name in _PACKAGES}}


def _write(text: str, path: str | PathLike[str] | None) -> str | None:
    """Write text to a path; return it where there is none."""
    if path is None:
        return text
    Path(path).write_text(text, encoding="utf-8")
    return None


def _plain(value: Any) -> Any:
    """Return a value with lists for arrays and tuples, and None for what JSON has no number for."""
    if isinstance(value, dict):
        return {key: _plain(own) for key, own in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(own) for own in value]
    if isinstance(value, (float, np.floating)):
        return float(value) if np.isfinite(value) else None
    return int(value) if isinstance(value, np.integer) else value


@validate_params(
    TARGET_CONSTRAINTS
    | {
        "kernel": KERNEL_CONSTRAINTS,
        "norm": [StrOptions({"l1", "sd"})],
        "threshold": [Interval(Real, 0, None, closed="left"), "array-like", None],
        "degrees": ["array-like"],
        "standardize": ["boolean"],
        "bins": ["array-like"],
        "task": [StrOptions({"auto", "classification", "regression"})],
        "confidence": [Interval(Real, 0, 1, closed="neither")],
        "n_resamples": [Interval(Integral, 1, None, closed="left")],
        "random_state": ["random_state"],
        "attribute_unit": [str, "array-like", None],
        "target_unit": [str, None],
        "about": [dict, None],
    },
    prefer_skip_nested_validation=True,
)
def fairness_report(
    y_true: Any,
    y_pred: Any = None,
    *,
    sensitive_features: Any,
    kernel: Any = "spline",
    norm: str = "sd",
    threshold: Any = None,
    degrees: Any = (1, 2, 3, 4, 5),
    standardize: bool = True,
    bins: Any = (2, 3, 5, 10),
    task: str = "auto",
    confidence: float = 0.95,
    n_resamples: int = 99,
    pos_label: Any = None,
    sample_weight: Any = None,
    random_state: Any = 0,
    attribute_unit: Any = None,
    target_unit: str | None = None,
    about: dict[str, str] | None = None,
) -> FairnessReport:
    """Measure predictions by every indicator, and state the results in words.

    Parameters
    ----------
    y_true : array-like of shape (n,)
        Original targets: numbers, booleans, or labels together with `pos_label`.
    y_pred : array-like of shape (n,), default=None
        Predictions. None measures `y_true` itself.
    sensitive_features : array-like of shape (n,) or (n, m)
        The protected attribute; text and categories are categorical. Of several each is measured
        alone, and the table has rows for all of them together.
    kernel : int, str, transformer or callable, default="spline"
        The functions of the attribute in the sentences and verdicts; see
        :func:`gedi_sklearn.metrics.gedi`.
    norm : {"sd", "l1"}, default="sd"
        The indicator in the sentences and verdicts: the deviation that the attribute explains, or
        the paper's sum of coefficients.
    threshold : float or array-like of shape (m,), default=None
        The share of the dependence of `y_true` that may remain: 0.2 is a fifth. One for each
        attribute, or one for all; None is no bound.
    degrees : array-like of int, default=(1, 2, 3, 4, 5)
        Degrees of GeDI in the table. Those that the attribute has too few distinct values for are
        left out.
    standardize : bool, default=True
        Whether GeDI in the table is measured on the standardised attribute.
    bins : array-like of int, default=(2, 3, 5, 10)
        Numbers of bins of the binned DIDI, at most that of the rows. An attribute of text, or of at
        most 10 distinct values, has the DIDI of its groups instead.
    task : {"auto", "classification", "regression"}, default="auto"
        The form of DIDI; "auto" takes the classification form where `y_true` has two classes.
        "classification" measures more classes, of any label, one against the rest: everything is
        that of the worst class.
    confidence : float, default=0.95
        Confidence of the intervals.
    n_resamples : int, default=99
        Number of permutations and resamples for HGR.
    pos_label : object, default=None
        The label that counts as 1; needed for text and categories.
    sample_weight : array-like of shape (n,), default=None
        Weights.
    random_state : int, RandomState instance or None, default=0
        Seed of simulations and resamples. All rows start from it, so equal indicators have equal
        values under independence.
    attribute_unit : str or array-like of str of shape (m,), default=None
        Unit of the attribute in words, such as "year".
    target_unit : str, default=None
        Unit of the targets in words, such as "points".
    about : dict of str to str, default=None
        Lines of the header, such as ``{"Model": "ridge", "Data": "five folds, each predicted by a
        model of the others", "Date": "1 May"}``.

    Returns
    -------
    FairnessReport

    Raises
    ------
    RankDeficientKernelError
        If an attribute is constant.
    ValueError
        If there are fewer rows than bins; if values are missing or infinite, or lengths differ.

    Warns
    -----
    UserWarning
        Where bins are merged, or rows lie outside the grid of HGR. Where a whole class does, HGR
        is that of ``method="kernel"``.
    UndefinedMetricWarning
        Where `y_true` does not depend on an attribute, so that a share of that is undefined.

    See Also
    --------
    gedi_sklearn.metrics.gedi_inference : The same of one indicator.

    Examples
    --------
    >>> import numpy as np
    >>> import pandas as pd
    >>> from gedi_sklearn import fairness_report
    >>> rng = np.random.default_rng(0)
    >>> age = pd.Series(rng.uniform(20, 60, 300), name="age")
    >>> pay = 30 + 0.5 * age + rng.normal(scale=3, size=300)
    >>> report = fairness_report(
    ...     pay,
    ...     pay - 0.4 * age,
    ...     sensitive_features=age,
    ...     threshold=0.25,
    ...     attribute_unit="year",
    ...     target_unit="euros",
    ... )
    >>> report.findings[0].verdict
    'met, including at the upper confidence limit'
    >>> print(report)
    Fairness report
    ...
    age
      Bound: at most 25% of the dependence may remain. Verdict: met, including at the upper ...
      Per additional year of age, the predictions are 0.0919 euros higher on average ...
      In the predictions, age explains a standard deviation of 1.11 euros, 36% of the total ...
      Share of the targets' dependence that remains: 19% ...
      ...
    """
    about = _check_about(about)
    degrees, bins = _check_integers(degrees, "degrees", 1), _check_integers(bins, "bins", 2)
    given = (sensitive_features, sample_weight, pos_label)
    samples = check_samples(y_true, y_pred, given, task)
    sample = samples[0]
    check_levels(sample.values, "sensitive_features (rows of positive weight)")
    n_attributes = sample.values.shape[1]
    asked = _for_each(threshold, n_attributes, "threshold")
    units = _for_each(attribute_unit, n_attributes, "attribute_unit")
    seed = check_random_state(random_state).randint(2**31)
    attributes = [(name, own) for name, own, is_joint in attributes_of(samples) if not is_joint]
    findings = [
        find(
            name,
            own,
            kernel=kernel,
            norm=norm,
            asked=bound,
            confidence=confidence,
            n_resamples=_PERMUTATIONS,
            seed=seed,
        )
        for (name, own), bound in zip(attributes, asked, strict=True)
    ]
    table = make_table(
        samples,
        degrees=degrees,
        standardize=standardize,
        bins=bins,
        task=task,
        confidence=confidence,
        n_resamples=n_resamples,
        seed=seed,
    )
    return FairnessReport(
        findings=adjust(findings),
        table=table,
        n_rows=len(sample.target),
        confidence=confidence,
        attribute_units=units,
        target_unit=target_unit,
        about=about,
        versions=installed_versions(),
        random_state=int(random_state) if isinstance(random_state, Integral) else None,
        data_hash=hash_of(samples),
    )


def _check_integers(values: Any, name: str, smallest: int) -> list[int]:
    """Return a list of integers; other values are an error and never rounded."""
    listed = np.asarray(values).ravel().tolist()
    for value in listed:
        if isinstance(value, bool) or not isinstance(value, int) or value < smallest:
            raise ValueError(f"{name} must hold integers of at least {smallest}, got {value!r}.")
    return listed


def _check_about(about: dict[str, str] | None) -> dict[str, str]:
    """Return the lines of the header; raise if a name or value is not a line of text."""
    for name, said in (about or {}).items():
        if not all(isinstance(one, str) and len(one.splitlines()) <= 1 for one in (name, said)):
            raise ValueError(
                f"about must have a line of text for each name and value; got {name!r}: {said!r}."
            )
    return dict(about or {})


def _for_each(value: Any, n_attributes: int, name: str) -> list[Any]:
    """Return one value for each attribute."""
    given = np.asarray(value, dtype=object)
    listed = given.ravel().tolist() * (1 if given.ndim else n_attributes)
    if len(listed) != n_attributes:
        raise ValueError(
            f"{name} must be one value, or one for each of the {n_attributes} attributes; got "
            f"{len(listed)}."
        )
    for one in listed:
        if one is None:
            continue
        if name == "threshold" and not (isinstance(one, Real) and float(one) >= 0):
            raise ValueError(f"threshold must hold shares of at least 0, or None; got {one!r}.")
        if name == "attribute_unit" and not isinstance(one, str):
            raise ValueError(f"attribute_unit must hold text, or None; got {one!r}.")
    return listed
