"""By how much outputs break the rules: satisfaction against the tolerance, and sizes."""

from __future__ import annotations

from gdpnet.study.report._results import Results
from gdpnet.study.report.tables import Table, number

_SHARES = {
    "csat": "within 1e-6",
    "csat_1e-04": "1e-4",
    "csat_1e-03": "1e-3",
    "csat_1e-02": "1e-2",
    "csat_1e-01": "1e-1",
}
_SIZES = {"mean": "mean", "95": "95 %", "most": "largest"}


def violations(
    results: Results, protocol: str, size: int, split: str, rules: bool = False
) -> Table | None:
    """Share of the samples within each tolerance, and the sizes; None for older studies.

    Args:
        results: of a study.
        protocol: name of the protocol.
        size: training samples.
        split: test split.
        rules: count the active rules alone, as the paper does, not constraints and bounds.
    """
    if "violation_mean" not in results.rows[-1]:
        return None
    kind = "_rules" if rules else ""
    shares = {name.replace("csat", f"csat{kind}", 1): told for name, told in _SHARES.items()}
    sizes = {f"violation{kind}_{name}": f"{told} violation" for name, told in _SIZES.items()}
    where = {"protocol": protocol, "size": size, "split": split}
    rows = []
    for method in results.methods:
        if size in results.sizes_of(method, protocol):
            found = {name: results.at(name, method=method, **where) for name in (*shares, *sizes)}
            cells = [number(name, found[name]) for name in shares]
            # The largest of all seeds, and means of the others.
            cells += [_size(found[n].high if n.endswith("most") else found[n].mean) for n in sizes]
            rows.append((method, *cells))
    return Table(
        f"{protocol}, n = {size}, {split}: samples within a tolerance, and what each sample breaks "
        f"most ({'active rules alone' if rules else 'rules, constraints and bounds'})",
        ("method", *shares.values(), *sizes.values()),
        tuple(rows),
    )


def _size(value: float) -> str:
    return "0" if value < 1e-9 else f"{value:.2g}"
