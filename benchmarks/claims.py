"""Frequencies that are multiplied, on unseen rows: ``python -m benchmarks.claims --help``.

A simulated portfolio, whose true frequencies are known, and the doctor's visits of the RAND health
insurance experiment: Manning et al. (1987), 20,190 years of 5,912 persons, from the files of
statsmodels.
"""

import argparse
import statistics
import warnings
from collections.abc import Callable, Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.metrics import mean_poisson_deviance
from sklearn.model_selection import GroupKFold

from benchmarks._storage import append_row, read_rows
from benchmarks._tables import insert_between, markdown
from gedi_sklearn import (
    DependenceConstraint,
    MovingTargetsRegressor,
    ProjectedRegressor,
    project_targets,
)
from gedi_sklearn.metrics import gedi

HERE = Path(__file__).parent
PAGE = HERE.parent / "docs" / "pricing_benchmark.md"
BEGIN, END = "<!-- {}: begin (written by benchmarks.claims) -->", "<!-- {}: end -->"
SHARE, FLOOR = 0.2, 0.01
SEEDS, N_ROWS, N_DRAWS = 20, 30_000, 200
MEASURES = ("left", "negative", "least", "total", "deviance")
COLUMNS = ("data", "seed", "model", *MEASURES)
RAND_COLUMNS = (
    "xage female black income educdec lfam site coins tookphys year disea physlm hlthg hlthf hlthp"
)


class Data(NamedTuple):
    """Rows of policies: the attribute is the first column of X, y is a rate.

    Attributes
    ----------
    exposure : ndarray of shape (n,)
        Years at risk.
    mean : ndarray of shape (n,) or None
        The true rate.
    person : ndarray of shape (n,) or None
        Whose policy it is.
    """

    X: np.ndarray
    y: np.ndarray
    exposure: np.ndarray
    mean: np.ndarray | None = None
    person: np.ndarray | None = None

    def rows(self, chosen: Any) -> "Data":
        return Data(*(None if own is None else own[chosen] for own in self))


def portfolio(n: int, seed: int) -> Data:
    """Return policies whose frequency has a strong effect of the driver's age."""
    rng = np.random.default_rng(seed)
    age = np.clip(rng.gamma(6, 7, n) + 16, 18, 90)
    power, density, vehicle = rng.integers(4, 12, n), rng.normal(size=n), rng.normal(size=n)
    young, old = np.clip((32 - age) / 14, 0, 1), np.clip((age - 65) / 20, 0, 1)
    other = 0.8 * density + 0.6 * vehicle + 0.06 * (power - 6)
    mean = np.exp(-1.2 + 1.1 * young + 0.6 * old + other)
    exposure = rng.uniform(0.2, 1.0, n)
    claims = rng.poisson(mean * exposure)
    return Data(np.c_[age, power, density, vehicle], claims / exposure, exposure, mean)


def rand_visits() -> Data:
    """Return the visits to a doctor, a row for each person and year."""
    package = find_spec("statsmodels")
    if package is None or package.origin is None:
        raise ImportError("statsmodels is not installed (pip install -e '.[benchmarks]').")
    path = Path(package.origin).parent / "datasets" / "randhie" / "src" / "randhie.csv"
    table = np.genfromtxt(path, delimiter=",", names=True)
    X = np.column_stack([table[name] for name in RAND_COLUMNS.split()])
    y = table["mdvis"] / table["time"]
    return Data(X, y, table["time"], person=table["zper"].astype(int))


def learner() -> HistGradientBoostingRegressor:
    return HistGradientBoostingRegressor(
        loss="poisson",
        learning_rate=0.07,
        max_leaf_nodes=15,
        min_samples_leaf=60,
        random_state=0,
    )


def models(cv: Any) -> dict[str, Any]:
    """Return every model, unfitted."""
    bound, age = DependenceConstraint(SHARE), {"sensitive_columns": 0}
    return {
        "kl": ProjectedRegressor(learner(), bound, loss="kl", cv=cv, **age),
        "squared error": ProjectedRegressor(learner(), bound, cv=cv, **age),
        "Moving Targets, kl": MovingTargetsRegressor(learner(), bound, loss="kl", **age),
    }


def predictions(train: Data, new: Data, cv: Any = 5) -> Iterator[tuple[str, np.ndarray]]:
    """Yield the name and the predictions for new rows of every model."""
    for name, model in models(cv).items():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # what they say is what is shown
            model.fit(train.X, train.y, sample_weight=train.exposure)
        if name == "kl":
            yield "plain", model.estimator_.predict(new.X)
            if new.mean is not None:
                yield "true mean", new.mean
                yield (
                    "true mean, projected",
                    project_targets(
                        new.mean,
                        sensitive_features=new.X[:, 0],
                        constraint=DependenceConstraint(model.threshold_, relative=False),
                        loss="kl",
                        sample_weight=new.exposure,
                    ).targets,
                )
        p = model.predict(new.X)
        yield name, p
        if name == "squared error":
            yield f"squared error, at least {FLOOR}", np.maximum(p, FLOOR)


def left(data: Data, p: np.ndarray) -> float:
    """Return the share of what age explains of the rates that it explains of predictions."""
    keywords = {"sensitive_features": data.X[:, 0], "sample_weight": data.exposure}
    return gedi(data.y, p, norm="sd", kernel="spline", relative=True, **keywords)


def measured(data: Data, p: np.ndarray) -> dict[str, float]:
    weight, positive = data.exposure, bool((p > 0).all())
    return {
        "left": left(data, p),
        "negative": float(np.mean(p <= 0)),
        "least": float(p.min()),
        "total": float(weight @ p / (weight @ data.y)),
        "deviance": mean_poisson_deviance(data.y, p, sample_weight=weight) if positive else np.nan,
    }


def run_simulated(seed: int, save: Callable[..., None]) -> None:
    train, new = (portfolio(N_ROWS, 2 * seed + part) for part in (0, 1))
    for name, values in [(name, measured(new, p)) for name, p in predictions(train, new)]:
        save("simulated", seed, name, values)


def run_rand(save: Callable[..., None]) -> None:
    """Predict every year of a person by models that have not seen the person."""
    data = rand_visits()
    found: dict[str, np.ndarray] = {}
    for train, test in GroupKFold(5).split(data.X, data.y, data.person):
        own = data.rows(train)
        inner = list(GroupKFold(5).split(own.X, own.y, own.person))
        for name, p in predictions(own, data.rows(test), inner):
            found.setdefault(name, np.empty(len(data.y)))[test] = p
    persons, code = np.unique(data.person, return_inverse=True)
    by_person = np.split(np.argsort(code, kind="stable"), np.cumsum(np.bincount(code))[:-1])
    for name, p in found.items():
        save("rand", 0, name, measured(data, p))
        rng, shares = np.random.default_rng(0), []
        for _ in range(N_DRAWS):
            drawn = [by_person[i] for i in rng.integers(0, len(persons), len(persons))]
            rows = np.concatenate(drawn)
            shares.append(left(data.rows(rows), p[rows]))
        print(
            f"{name}: 90 % of draws of persons leave {np.quantile(shares, [0.05, 0.95]).round(3)}"
        )


def table(rows: Sequence[dict[str, str]], data: str) -> str:
    """Return the means over all seeds, with the standard error of the share and the excess."""
    own = [row for row in rows if row["data"] == data]
    names = dict.fromkeys(row["model"] for row in own)
    header = ["model", "share left", "at most 0", "least", "total", "Poisson deviance"]
    lines = []
    for name in names:
        values = {m: [float(r[m]) for r in own if r["model"] == name] for m in MEASURES}
        mean = {measure: statistics.fmean(found) for measure, found in values.items()}
        lines.append(
            [
                name,
                f"{mean['left']:.3f}",
                f"{mean['negative']:.2%}",
                f"{min(values['least']):.3g}",
                f"{mean['total']:.4f}",
                "infinite" if np.isnan(mean["deviance"]) else f"{mean['deviance']:.4f}",
            ]
        )
    return markdown(header, lines)


def verdict(rows: Sequence[dict[str, str]]) -> str:
    """Return what a model loses to the oracle beside what the plain one loses to the truth."""
    found = {
        (r["seed"], r["model"]): float(r["deviance"]) for r in rows if r["data"] == "simulated"
    }
    seeds = sorted({seed for seed, _ in found})

    def differences(model: str, other: str) -> np.ndarray:
        return np.array([found[seed, model] - found[seed, other] for seed in seeds])

    plain = differences("plain", "true mean")
    lines = [f"D(plain) − D(true mean) is {plain.mean():.5f} over {len(seeds)} seeds."]
    for name in ("kl", f"squared error, at least {FLOOR}", "Moving Targets, kl"):
        lost = differences(name, "true mean, projected")
        beyond = lost - 1.1 * plain
        error = beyond.std(ddof=1) / np.sqrt(len(seeds))
        lines.append(
            f"{name}: D − D(true mean, projected) is {lost.mean():.5f}; beyond 1.1 times the plain "
            f"model's {beyond.mean():+.5f}, standard error {error:.5f}."
        )
    return "\n".join(f"- {line}" for line in lines)


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.claims",
        description="Share left, negative predictions, total and deviance on unseen rows.",
    )
    parser.add_argument("--data", nargs="+", choices=("simulated", "rand"))
    parser.add_argument("--seeds", type=int, default=SEEDS, help="of the portfolio")
    parser.add_argument("--output", type=Path, default=HERE / "results")
    parser.add_argument("--report", action="store_true", help="run nothing, print the tables")
    parser.add_argument("--docs", action="store_true", help=f"write the tables of docs/{PAGE.name}")
    options = parser.parse_args(argv)
    path = options.output / "claims.csv"
    chosen = options.data or ("simulated", "rand")
    done = {(row["data"], row["seed"]) for row in read_rows(path, COLUMNS)}

    def save(data: str, seed: int, model: str, values: dict[str, float]) -> None:
        numbers = {name: f"{value:.6g}" for name, value in values.items()}
        append_row(path, COLUMNS, {"data": data, "seed": seed, "model": model, **numbers})

    for seed in range(options.seeds if "simulated" in chosen and not options.report else 0):
        if ("simulated", str(seed)) not in done:
            run_simulated(seed, save)
    if "rand" in chosen and not options.report and ("rand", "0") not in done:
        run_rand(save)
    rows = read_rows(path, COLUMNS)
    for data in chosen:
        text = table(rows, data)
        if data == "simulated":
            text += f"\n\n{verdict(rows)}"
        print(text)
        if options.docs:
            page = PAGE.read_text(encoding="utf-8")
            begin, end = BEGIN.format(data), END.format(data)
            page = insert_between(page, begin, end, text, page=str(PAGE))
            PAGE.write_text(page, encoding="utf-8")


if __name__ == "__main__":
    main()
