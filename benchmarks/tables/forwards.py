"""What pages show of forwards.py."""

from __future__ import annotations

from ._stored import Rows, Stored, fixed, percent, table

TASKS = {
    ("toy", "one_rule"): "one rule",
    ("toy", "two_rules"): "two rules",
    ("toy", "figure1"): "Figure 1",
    ("cooling", "iid"): "cooling IID",
    ("cooling", "ood"): "cooling OOD",
}
LIFTS = {
    "DNF, vertex": "DNF, lifted, l1 (gdpnet)",
    "DNF, l2": "DNF, lifted, l2 (gdpnet)",
    "DNF, hull in y": "DNF, hull in y, no lift",
    "CNF, vertex": "CNF, lifted, l1 (gdpnet)",
    "CNF, hull in y": "CNF, hull in y, no lift",
}
KINDS = {"dirichlet": "drawn from the simplex", "uniform": "uniform", "certain": "certain"}


def lift(stored: Stored) -> list[str]:
    """Share satisfied, and l2 distance, with and without the lift."""
    rows = Rows([*stored["forwards"], *stored["forwards.cells"]])
    columns = TASKS | {("pbmc", "n = 24"): "PBMC3k, n = 24", ("pbmc", "n = 475"): "n = 475"}

    def cell(forward: str, task: str, kind: str) -> str:
        own = {"forward": forward, "task": task, "predictions": kind}
        share, far = rows.value("csat_1e_6", **own), rows.value("distance_l2", **own)
        if share is None:
            return ""
        return _share(share) if far is None else f"{_share(share)}, {far:.3f}"

    return table(
        ["rules satisfied, mean l2 distance", *columns.values()],
        [[told, *(cell(name, *column) for column in columns)] for name, told in LIFTS.items()],
    )


def violations(stored: Stored) -> list[str]:
    """By how much what is not lifted breaks the rules."""
    rows = stored["forwards"]

    def cell(forward: str, task: str, kind: str) -> str:
        own = {"forward": forward, "task": task, "predictions": kind}
        names = ("violation_mean", "violation_95", "violation_most")
        values = [rows.value(name, **own) for name in names]
        return "" if values[0] is None else " / ".join(fixed(value, 3) for value in values)

    return table(
        ["mean / 95 % / largest violation", *TASKS.values()],
        [[told, *(cell(name, *column) for column in TASKS)] for name, told in LIFTS.items()],
    )


def pbmc(stored: Stored) -> list[str]:
    """Every forward on the cells, within 1e-6 and within 1e-3."""
    rows = stored["forwards.cells"]
    kinds = rows.values("predictions")

    def cell(forward: str, kind: str) -> str:
        own = {"forward": forward, "predictions": kind}
        return " / ".join(fixed(rows.value(f"csat_{tol}", **own), 3) for tol in ("1e_6", "1e_3"))

    return table(
        ["forward", *kinds],
        [[name, *(cell(name, kind) for kind in kinds)] for name in rows.values("forward")],
    )


def relaxations(stored: Stored) -> list[str]:
    """CNF's satisfaction, and how often its value is too low."""
    rows = stored["forwards.relaxations"]
    made = []
    for name in rows.values("rules"):
        for rho in rows.values("rho"):
            own = rows.where(rules=name, rho=rho)
            free, cells = own.value("conflict_free"), own.value("cells")
            told = [f"{name}, rho {rho}", f"{free} of {cells}"]
            for kind in KINDS:
                one = own.where(predictions=kind)
                told.append(f"{one.value('csat'):.3f} / {one.value('below'):.3f}")
            made.append(told)
    return table(["rules", "conflict-free cells", *KINDS.values()], made)


def _share(value: float) -> str:
    """Per cent; 100 only where it is all."""
    told = f"{100 * value:.0f}"
    return f"{100 * value:.1f} %" if told == "100" and value < 1 else f"{told} %"


def _hull(stored: Stored, split: str) -> str:
    """How often the hull in y satisfies everything on cooling."""
    own = {"forward": "DNF, hull in y", "task": "cooling", "predictions": split}
    return _share(stored["forwards"].needed("csat_1e_6", **own))


def _least_most(stored: Stored, forwards: tuple[str, ...]) -> str:
    """How much of the cells forwards lose, over all networks."""
    rows = stored["forwards.cells"]
    rows.needed("csat_1e_6", forward=forwards[0])
    lost = [
        100 * (1 - row["csat_1e_6"])
        for row in rows
        if row["forward"] in forwards and row["predictions"] != "uniform"
    ]
    return f"{min(lost):.0f} to {max(lost):.0f} %"


def _behind(stored: Stored, rho: float, column: str) -> str:
    """On how many of the cells CNF falls behind, at most, over rule sets and predictions."""
    rows = stored["forwards.relaxations"].where(rho=rho)
    return percent(max(1 - row[column] if column == "csat" else row[column] for row in rows), 1)


TABLES = {
    "forwards.lift": lift,
    "forwards.violations": violations,
    "forwards.pbmc": pbmc,
    "forwards.relaxations": relaxations,
}
VALUES = {
    "forwards.hull iid": lambda s: _hull(s, "iid"),
    "forwards.hull ood": lambda s: _hull(s, "ood"),
    "forwards.CNF breaks 0.5": lambda s: _behind(s, 0.5, "csat"),
    "forwards.CNF breaks 0.6": lambda s: _behind(s, 0.6, "csat"),
    "forwards.CNF below 0.5": lambda s: _behind(s, 0.5, "below"),
    "forwards.CNF below 0.6": lambda s: _behind(s, 0.6, "below"),
    "forwards.interior pbmc": lambda s: _least_most(s, ("DNF, interior point",)),
    "forwards.regularised pbmc": lambda s: _least_most(
        s, tuple(f"DNF, regularised, eps {eps}" for eps in ("1e-3", "1e-2", "1e-1"))
    ),
}
