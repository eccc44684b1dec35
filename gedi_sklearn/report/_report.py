"""What was found, as a table, as JSON, as text and as a page."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from importlib.metadata import version
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from ._findings import Findings, sentences
from ._html import render

_PACKAGES = ("gedi-sklearn", "numpy", "scipy", "scikit-learn")


@dataclass(frozen=True)
class FairnessReport:
    """What :func:`fairness_report` found; ``print`` says it in words.

    Attributes
    ----------
    findings : tuple of Findings
        Of each attribute: the indicator, what is left, its inference and the curve E[ŷ | x].
    table : dict of str to list
        All indicators, as columns; see :meth:`to_frame`.
    n_rows : int
        Rows of positive weight.
    confidence_level : float
        Of the intervals.
    attribute_units : list of str or None
        Unit of each attribute.
    target_unit, data, date : str or None
        As given.
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
    confidence_level: float
    attribute_units: list[str | None]
    target_unit: str | None
    data: str | None
    date: str | None
    versions: dict[str, str]

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
            **asdict(self),
            "findings": [asdict(one) | {"verdict": one.verdict} for one in self.findings],
        }
        return _plain(found)

    def __str__(self) -> str:
        lines = ["Fairness report", *self._header()]
        for found, said in self._said():
            lines += ["", found.attribute, *(f"  {sentence}" for sentence in said)]
        return "\n".join(lines)

    def to_html(self, path: str | PathLike[str] | None = None) -> str:
        """Return the report as a page of its own, and write it where a path is given.

        The page asks for nothing from outside, can be read without colours, and prints on A4.

        Parameters
        ----------
        path : str or path-like, default=None
            Where to write it.

        Returns
        -------
        str
        """
        page = render(list(self._header()), list(self._said()), self.table, self.target_unit)
        if path is not None:
            Path(path).write_text(page, encoding="utf-8")
        return page

    def _header(self) -> Iterator[str]:
        names = ", ".join(found.attribute for found in self.findings)
        yield f"Protected attribute: {names}. Rows: {self.n_rows:,}."
        if self.data is not None:
            yield f"Data: {self.data}."
        if self.date is not None:
            yield f"Date: {self.date}."
        yield "Made with " + ", ".join(f"{name} {own}" for name, own in self.versions.items()) + "."

    def _said(self) -> Iterator[tuple[Findings, list[str]]]:
        for found, unit in zip(self.findings, self.attribute_units, strict=True):
            said = list(sentences(found, unit, self.target_unit, self.confidence_level))
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
    return {name: version(name) for name in _PACKAGES}


def _plain(value: Any) -> Any:
    """Return a value with lists for arrays and tuples, and None for what JSON has no number for."""
    if isinstance(value, dict):
        return {key: _plain(own) for key, own in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(own) for own in value]
    if isinstance(value, (float, np.floating)):
        return float(value) if np.isfinite(value) else None
    return int(value) if isinstance(value, np.integer) else value
