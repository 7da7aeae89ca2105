"""What pages show of exact.py."""

from __future__ import annotations

from ._stored import Rows, Stored, fixed, ms, number, powers, ratio, span, table, us

SPLITS = {"iid": "in distribution", "ood": "shifted"}
LARGE = {
    "dense_rules": "d = 20, 10 rules x 3 disjuncts x 3 rows",
    "label_groups": "d = 100 simplex, 20 groups",
    "job_shop": "job shop, 35 disjunctions",
    "strip_packing": "strip packing, 8 rectangles",
    "label_clauses": "200 clauses over 40 labels",
}


def cooling(stored: Stored) -> list[str]:
    rows = stored["exact.cooling"]

    def cells(batch: int, what: str, first: str) -> list[str]:
        found = []
        for split in SPLITS:
            taken = rows.value("seconds", split=split, batch=batch, what=what)
            warm = rows.value("seconds", split=split, what="HiGHS warm")
            times = number(ratio(warm, taken))
            found.append(f"{fixed(taken, 2, 1e6)} us, {times} times{first if not found else ''}")
        return found

    def single(split: str) -> str:
        taken = rows.value("seconds", split=split, batch=1, what="project")
        warm = rows.value("seconds", split=split, what="HiGHS warm")
        return f"{us(taken)} us, {fixed(ratio(taken, warm))} of HiGHS warm"

    def without_torch(split: str) -> str:
        parts = [rows.value("seconds", split=split, batch=1, what=w) for w in ("rows", "search")]
        return f"{us(sum(part or 0.0 for part in parts))} us"

    warm = [rows.value("seconds", split=split, what="HiGHS warm") for split in SPLITS]
    return table(
        ["", *SPLITS.values()],
        [
            ["HiGHS on the DNF's LP, warm", *(f"{us(taken)} us a sample" for taken in warm)],
            ["engine, batch 4096: search alone", *cells(4096, "search", " faster")],
            ["... with rows and conditions", *cells(4096, "with rows", "")],
            ["... through `gdpnet.project`", *cells(4096, "project", "")],
            ["engine, batch 256, with rows and conditions", *cells(256, "with rows", "")],
            ["... through `gdpnet.project`", *cells(256, "project", "")],
            ["a single prediction, `gdpnet.project`", *map(single, SPLITS)],
            ["... of it rows, search and dispatch", *map(without_torch, SPLITS)],
        ],
    )


def growth(stored: Stored) -> list[str]:
    titles = ["k two-term rules, d = 3", "products", "engine, us", "DNF LP by HiGHS, us", "ratio"]
    return table(
        titles,
        [
            [
                str(row["k"]),
                f"{row['products']:,}",
                fixed(row["engine_s"], 2, 1e6),
                fixed(row["lp_s"], 0, 1e6),
                fixed(ratio(row["lp_s"], row["engine_s"]), 0),
            ]
            for row in stored["exact.growth"]
            if row["k"] in (1, 4, 8, 10, 20)
        ],
    )


def large(stored: Stored) -> list[str]:
    rows = stored["exact.large"]
    titles = ["problem", "products", "engine, ms", "MILP by HiGHS", "by Gurobi"]

    def longer(row: dict, solver: str) -> str:
        told = fixed(ratio(row[f"{solver}_s"], row["engine_s"]), 0)
        return f"{told} times longer" if told else "licence"

    return table(
        titles,
        [
            [
                LARGE.get(row["problem"], row["problem"]),
                powers(row["products"]),
                fixed(row["engine_s"], 2, 1e3),
                longer(row, "highs"),
                longer(row, "gurobi"),
            ]
            for row in rows
        ],
    )


def what_we_ran(stored: Stored) -> list[str]:
    """Sizes and times of all problems, for the page on related methods."""
    growth, large = stored["exact.growth"], stored["exact.large"]
    rows = [["cooling, the paper's task", "7", "up to 128", f"{batch_span(stored)} microseconds"]]
    for k in (10, 20):
        taken = us(growth.value("engine_s", k=k))
        rows.append(["two-term rules in 3 outputs", f"{k}", f"{2**k:,}", f"{taken} microseconds"])
    for problem, title, rules in (
        ("dense_rules", "20 outputs, 3 disjuncts of 3 rows", "10"),
        ("label_groups", "probabilities of 100 classes in 20 groups", "20"),
        ("job_shop", "job shop", "35"),
        ("strip_packing", "strip packing, 8 rectangles", "28"),
        ("label_clauses", "clauses over 40 labels", "200"),
    ):
        taken, count = (large.value(c, problem=problem) for c in ("engine_s", "products"))
        told = "" if count is None else powers(count)
        rows.append([title, rules, told, f"{fixed(taken, 2, 1e3)} ms"])
    return table(["problem", "rules", "products of disjuncts", "a sample"], rows)


def _through(rows: Rows) -> list[float]:
    """Times of `gdpnet.project` on batches."""
    return [row["seconds"] for row in rows.where(what="project") if row["batch"] > 1]


def batch_span(stored: Stored) -> str:
    return span(1e6 * taken for taken in _through(stored["exact.cooling"]))


def _warm_ratios(stored: Stored) -> str:
    rows = stored["exact.cooling"]
    return span(
        ratio(rows.value("seconds", split=row["split"], what="HiGHS warm"), row["seconds"])
        for row in rows.where(what="project")
        if row["batch"] > 1
    )


def _milp(stored: Stored, solver: str) -> str:
    rows = stored["exact.large"]
    return span(ratio(row[f"{solver}_s"], row["engine_s"]) for row in rows)


def _memory(stored: Stored) -> str:
    (row,) = stored["exact.memory"]
    told = row["resident_bytes"] or row["traced_bytes"]
    return f"{number(told / 1e6)} MB"


def _torch_share(stored: Stored) -> str:
    rows = stored["exact.cooling"].where(split="iid", batch=1)
    parts = sum(rows.value("seconds", what=what) or 0.0 for what in ("rows", "search"))
    return f"{100 * (1 - parts / rows.value('seconds', what='project')):.0f} %"


TABLES = {
    "exact.cooling": cooling,
    "exact.growth": growth,
    "exact.large": large,
    "exact.what we ran": what_we_ran,
}
VALUES = {
    "exact.difference": lambda stored: (
        f"{max(stored['exact.cooling'].values('difference')):.0e}".replace("e-0", "e-")
    ),
    "exact.batch us": batch_span,
    "exact.over warm": _warm_ratios,
    "exact.milp highs": lambda stored: _milp(stored, "highs"),
    "exact.milp gurobi": lambda stored: _milp(stored, "gurobi"),
    "exact.memory": _memory,
    "exact.share of torch": _torch_share,
    "exact.packing ms": lambda stored: (
        ms(stored["exact.large"].value("engine_s", problem="strip_packing")) + " ms"
    ),
}
