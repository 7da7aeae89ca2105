"""Tables of a study: means over seeds, at the sizes that a protocol has."""

from __future__ import annotations

import statistics

from gdpnet.study.report import Results
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
