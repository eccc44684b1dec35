"""What was found, as a table, as JSON and CSV, as text and as a page."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from html import escape
from importlib.metadata import version
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from ._findings import Findings, sentences
from ._html import render

_PACKAGES = ("gedi-sklearn", "numpy", "scipy", "scikit-learn")
# Of `to_dict` and what is written from it; it changes where keys or columns do.
FORMAT_VERSION = 1


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
    confidence_level : float
        Of the intervals.
    attribute_units : list of str or None
        Unit of each attribute.
    target_unit, model, data, date : str or None
        As given.
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
    confidence_level: float
    attribute_units: list[str | None]
    target_unit: str | None
    model: str | None
    data: str | None
    date: str | None
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

        The page asks for nothing from outside, can be read without colours, and prints on A4.

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
        if self.model is not None:
            yield f"Model: {self.model}."
        if self.data is not None:
            yield f"Data: {self.data}."
        if self.date is not None:
            yield f"Date: {self.date}."
        yield "Made with " + ", ".join(f"{name} {own}" for name, own in self.versions.items()) + "."
        seed = "" if self.random_state is None else f"Seed {self.random_state}. "
        yield f"{seed}SHA-256 of the data {self.data_hash}."

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
