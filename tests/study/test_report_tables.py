"""Tables of a study: means over seeds, at the sizes that a protocol has."""

from __future__ import annotations

import statistics

from gdpnet.study.report import Results, mixtures, violations
from gdpnet.study.report.tables import overhead, quality


def row(seed: int = 0, **more: object) -> dict[str, object]:
    usual = {"protocol": "paper", "method": "dnf", "size": 50, "seed": seed, "split": "iid"}
    numbers = {"mse": 0.5, "csat": 0.9, "csat_conflict_free": 1.0, "csat_rules": 0.9}
    counts = {"conflict_free": 90.0, "samples": 100.0, "epoch_seconds": 2.0}
    return {**usual, **numbers, **counts, **more}


def test_means_and_deviations_over_seeds() -> None:
    values = (0.1, 0.2, 0.6)
    table = quality(Results([row(seed, mse=mse) for seed, mse in enumerate(values)]), "paper", 50)
    assert table.headers[1] == "MSE iid"
    assert table.rows[0][1] == f"{statistics.fmean(values):.3g} ({statistics.stdev(values):.3g})"


def test_conflict_free_samples_are_told_apart_where_there_are_conflicts() -> None:
    table = quality(Results([row()]), "paper", 50)
    cells = dict(zip(table.headers, table.rows[0], strict=True))
    assert cells["CSAT iid"] == "90.00 %"
    assert cells["CSAT, conflict-free iid"] == "100 %"
    table = quality(Results([row(conflict_free=100.0)]), "paper", 50)
    assert "CSAT, conflict-free iid" not in table.headers


def test_costs_are_those_of_the_protocols_own_largest_size() -> None:
    results = Results([row(), row(size=20, epoch_seconds=1.0), row(protocol="quick", size=20)])
    for protocol, size in (("paper", 50), ("quick", 20)):
        table = overhead(results, protocol)
        assert f"n = {size}," in table.caption
        assert [cells[:2] for cells in table.rows] == [("dnf", "2")]


def mixed_rows() -> list[dict[str, object]]:
    names = ("dnf", "straight-through", "dnf-mixed", "dnf-mixed:0.5", "dnf-mixed:0.75", "cnf-mixed")
    return [
        row(seed, method=name, mse=0.1 * k + 0.01 * seed, violation_mean=0.1, violation_most=0.3)
        for k, name in enumerate(names)
        for seed in (0, 1)
    ]


def test_mixtures_stand_by_their_share_and_leave_the_other_tables_alone() -> None:
    results = Results(mixed_rows())
    assert list(results.mixed("dnf")) == [0.0, 0.25, 0.5, 0.75, 1.0]
    assert results.mixed("cnf") == {0.25: "cnf-mixed"}
    assert "dnf-mixed" in results.methods
    assert "dnf-mixed:0.5" not in results.methods
    table = mixtures(results, "paper", "mse")
    assert table is not None
    assert table.headers == ("alpha", "0", "0.25", "0.5", "0.75", "1")
    told = dict(zip(table.headers, table.rows[-1], strict=True))
    assert told["alpha"] == "DNF, n = 50, IID"
    assert told["1"].startswith("0.005 ")
    assert told["0.75"].startswith("0.405 ")
    assert mixtures(Results([row()]), "paper", "mse") is None


def test_the_largest_violation_is_that_of_all_seeds() -> None:
    rows = [row(seed, violation_mean=0.1, violation_most=0.1 * seed) for seed in (1, 4)]
    table = violations(Results(rows), "paper", 50, "iid")
    assert table is not None
    cells = dict(zip(table.headers, table.rows[0], strict=True))
    assert cells["largest violation"] == "0.4"
    assert cells["mean violation"] == "0.1"
    assert violations(Results([row()]), "paper", 50, "iid") is None
