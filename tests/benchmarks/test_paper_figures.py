"""The paper's figures: their numbers, the files, and the page that shows them."""

import dataclasses

import numpy as np
import pytest
from numpy.testing import assert_allclose

from benchmarks import paper_figures
from benchmarks._figure_numbers import NUMBERS, Settings, gedi_against_hgr, steps_down
from benchmarks.tasks import TASKS

# Bounds of every kind on purpose, whatever they leave.
pytestmark = pytest.mark.filterwarnings("ignore::gedi_sklearn.exceptions.UnseenDependenceWarning")

SETTINGS = Settings(paper_figures.RESULTS / "paper_tables.csv", tasks=TASKS[:2])
needs_matplotlib = pytest.mark.skipif(
    not paper_figures.can_draw(), reason="drawing needs the extra `plot`"
)


@pytest.fixture(scope="module")
def tables():
    """Return the tables of every figure, of the two small tasks."""
    return {number: numbers(SETTINGS) for number, numbers in NUMBERS.items()}


def value_of(rows, name, **key):
    (row,) = (row for row in rows if all(row[k] == v for k, v in key.items()))
    return row[name]


# --- what the paper says of each


def test_unrestricted_hgr_is_1_where_the_targets_are_independent(tables):
    rows = tables[1][""]
    assert value_of(rows, "value", panel="a", indicator="HGR, unrestricted f") == pytest.approx(1)
    assert value_of(rows, "value", panel="a", indicator="GeDI-V1") < 0.2


def test_hgr_sees_a_spread_and_gedi_the_mean_alone(tables):
    rows = tables[1][""]
    assert value_of(rows, "value", panel="b", indicator="HGR, kde") > 0.4
    assert value_of(rows, "value", panel="b", indicator="GeDI-V1") < value_of(
        rows, "value", panel="b", indicator="GeDI-V1 by chance"
    )


def test_gedi_sees_the_scale_and_hgr_does_not(tables):
    rows = tables[1][""]
    for indicator, factor in (("HGR, kde", 1), ("GeDI-V1", 0.2)):
        before, after = (
            value_of(rows, "value", panel="c", indicator=indicator, series=series)
            for series in ("y", "0.2 y + 0.4")
        )
        assert_allclose(after, factor * before)


def test_every_order_removes_its_part_of_the_running_example(tables):
    rows = tables[2][""]
    for row in rows:
        assert_allclose([row[f"gedi_v{k}"] for k in range(1, row["order"] + 1)], 0, atol=1e-12)
    left = [row["signal_left"] for row in rows]
    assert left == sorted(left, reverse=True)
    assert left[0] == 1
    assert left[-1] < 0.01


def test_preprocessed_targets_meet_the_threshold(tables):
    rows = tables[3][""]
    assert_allclose([row["gedi_vk_percent"] for row in rows], 20, rtol=1e-6)
    # One attribute has two groups, the other four numbers of bins and five orders.
    assert len(rows) == 2 * (1 + 4 * 5)
    assert_allclose([row["didi_percent"] for row in rows if row["bins"] == "groups"], 20)
    fine = [row["gedi_v1_percent"] for row in rows if row["constraint"] == "fine"]
    assert_allclose(fine, 20, rtol=1e-6)


def test_steps_down_are_counted():
    rows = [
        {"task": "t", "constraint": "fine", "bins": "2", "order": order, "didi_percent": percent}
        for order, percent in ((1, 50.0), (2, 30.0), (3, 40.0))
    ]
    assert steps_down(rows) == [{"task": "t", "constraint": "fine", "smaller": 1, "steps": 2}]


# --- the files


@needs_matplotlib
@pytest.mark.slow
@pytest.mark.parametrize("number", NUMBERS)
def test_pictures_of_the_same_numbers_are_the_same(tables, number, tmp_path):
    written = []
    for run in ("first", "second"):
        folder = tmp_path / run
        folder.mkdir()
        paths = paper_figures.draw(number, tables[number], folder)
        written.append({path.name: path.read_bytes() for path in paths})
    assert set(written[0]) == {f"figure_{number}.png", f"figure_{number}.svg"}
    assert written[0] == written[1]


@needs_matplotlib
def test_the_command_writes_pictures_and_numbers(tmp_path, capsys):
    paper_figures.main(["--figure", "2", "--output", str(tmp_path)])
    names = {"figure_2.csv", "figure_2_points.csv", "figure_2.png", "figure_2.svg"}
    assert {path.name for path in tmp_path.iterdir()} == names
    assert "Figure 2: figure_2.csv" in capsys.readouterr().out


def test_without_matplotlib_the_command_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setattr(paper_figures, "can_draw", lambda: False)
    with pytest.raises(SystemExit, match=r"pip install -e '\.\[plot\]'"):
        paper_figures.main(["--figure", "2", "--output", str(tmp_path)])


def test_rounding_noise_is_written_as_0(tmp_path):
    paper_figures.write_tables(2, {"": [{"a": 1e-17, "b": np.float64(1 / 3), "c": 2}]}, tmp_path)
    assert (tmp_path / "figure_2.csv").read_text(encoding="utf-8") == "a,b,c\n0,0.333333,2\n"


# --- the committed results


def test_committed_page_holds_the_committed_numbers():
    page = paper_figures.PAGE.read_text(encoding="utf-8")
    assert page == paper_figures.fill_page(page, paper_figures.OUTPUT)
    with pytest.raises(ValueError, match="lacks the lines"):
        paper_figures.fill_page("no markers", paper_figures.OUTPUT)


def test_committed_figure_4_is_that_of_the_committed_tables(tmp_path):
    """Where it fails: `python -m benchmarks.paper_figures --docs`, and commit."""
    few = dataclasses.replace(SETTINGS, tasks=())
    current = gedi_against_hgr(few)
    del current["independent"]
    for path in paper_figures.write_tables(4, current, tmp_path):
        committed = (paper_figures.OUTPUT / path.name).read_text(encoding="utf-8")
        assert path.read_text(encoding="utf-8") == committed


@pytest.mark.parametrize("number", sorted(set(NUMBERS) - {4}))
def test_committed_numbers_are_the_current_ones(tables, number, tmp_path):
    for path in paper_figures.write_tables(number, tables[number], tmp_path):
        name = path.name.removesuffix(".csv").partition(f"figure_{number}")[2].lstrip("_")
        current, committed = (
            paper_figures.read_table(number, folder, name)
            for folder in (tmp_path, paper_figures.OUTPUT)
        )
        tasks = {row.get("task") for row in current}
        committed = [row for row in committed if row.get("task") in tasks]
        assert len(current) == len(committed)
        for row, other in zip(current, committed, strict=True):
            for key, value in row.items():
                assert value == other[key] or float(value) == pytest.approx(
                    float(other[key]), rel=1e-4, abs=1e-9
                )
