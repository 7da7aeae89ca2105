"""The report of a study as a page of HTML."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Any

from gdpnet.study._numbers import percent
from gdpnet.study.page import Page
from gdpnet.study.report import tables
from gdpnet.study.report._figures import convexification_figure, size_figure, size_groups
from gdpnet.study.report._mixtures import mixed_sizes, mixture_figure, mixtures
from gdpnet.study.report._one_size import one_size_figure
from gdpnet.study.report._results import Results
from gdpnet.study.report._violations import violations
from gdpnet.study.report.tables import Table
from gdpnet.study.training._methods import ABOUT


def write_report(results: Results, study: dict[str, Any], path: Path) -> None:
    """Write tables and figures of a study to one file that needs no other.

    Args:
        results: of the study.
        study: what was studied, from `StudyFolder.study`.
        path: the page.
    """
    name = study.get("model", "study")
    page = Page(f"{name}: training with rules", title=f"{name}: training")
    page.paragraph(
        f"{len(results.rows)} results: {len(results.methods)} methods, training sizes "
        f"{', '.join(map(str, results.sizes))}, {tables.seeds_told(results)}. All methods of a "
        "seed share the backbone, the samples and their order. CSAT is the share of test samples "
        "whose output satisfies the active rules, the global constraints and the bounds within "
        "1e-6; 'conflict-free' counts the samples that some output could satisfy, and 'rules only' "
        "leaves constraints and bounds out, as the paper counts. Gradients "
        f"through projections: {study.get('gradient', '')}; {_norm_told(study)}."
    )
    share = study.get("targets_satisfied")
    if share is not None:
        page.paragraph(_targets_told(share))
    known = [(name, ABOUT[name]) for name in results.methods if name in ABOUT]
    page.section("Methods")
    page.table(("method", "what it is"), known)
    for protocol in results.protocols:
        _protocol(page, results, protocol, study.get("protocols", {}).get(protocol, {}))
    _source(page, study.get("runs", []))
    page.write(path)


def _source(page: Page, runs: list[dict[str, Any]]) -> None:
    """Where the numbers come from."""
    page.section("Where these numbers come from")
    page.paragraph(
        "Everything here is drawn from results.csv beside this page. On the same kind of processor "
        "a repeated run gives the same numbers to the last digit, times aside; on another one they "
        "differ as between seeds."
    )
    names = ("date", "commit", "cpu", "cores", "variant", "gdpnet", "torch", "python")
    rows = [[str(run.get(name) or "")[:40] for name in names] for run in runs]
    if rows:
        page.table(names, rows)


def _norm_told(study: dict[str, Any]) -> str:
    euclidean = study.get("norm") == "l2"
    return "to the nearest output in the " + ("Euclidean (l2) norm" if euclidean else "l1 norm")


def _targets_told(share: float) -> str:
    text = f"{percent(share)} % of the training targets satisfy the rules within 1e-6."
    if share < 1.0:
        text += (
            " The others break them, by noise or otherwise: an output that satisfies the rules "
            "cannot equal such a target."
        )
    return text


def _protocol(page: Page, results: Results, protocol: str, settings: dict[str, Any]) -> None:
    page.section(f"Protocol {protocol}")
    page.paragraph(_told(settings))
    sizes = [n for n in results.sizes if _any_at(results, protocol, n)]
    for title, methods in size_groups(results).items() if len(sizes) > 1 else ():
        page.figure(
            size_figure(results, protocol, methods, title),
            alt=f"{results.metrics[0]} and CSAT of {', '.join(methods)} against the training size, "
            f"protocol {protocol}; the numbers are in the tables below.",
            caption="Mean over the seeds; bars from the least to the most. CSAT of the active "
            "rules alone, as the paper counts.",
        )
    if len(sizes) == 1 and find_spec("matplotlib") is None:
        page.paragraph("A picture of this table needs matplotlib: pip install 'gdpnet[plot]'.")
    elif len(sizes) == 1:
        page.figure(
            one_size_figure(results, protocol, sizes[0]),
            alt=f"{results.metrics[0]} and CSAT of every method, protocol {protocol}; the numbers "
            "are in the table below.",
            caption="Mean over the seeds; bars from the least to the most. CSAT of the active "
            "rules alone, as the paper counts.",
        )
    for size in sizes:
        _append(page, tables.quality(results, protocol, size))
    if sizes and "violation_mean" in results.rows[0]:
        page.section("By how much rules are broken", level=3)
        for split in results.splits:
            found = violations(results, protocol, sizes[-1], split)
            if found is not None:
                _append(page, found)
    if mixed_sizes(results, protocol):
        page.section("Mixtures of gradients", level=3)
        page.figure(
            mixture_figure(results, protocol),
            alt=f"{results.metrics[0]} against the share of the KKT gradient, protocol {protocol}; "
            "the numbers are in the table below.",
            caption="Mean over the seeds; bars are standard errors.",
        )
        mixed = mixtures(results, protocol, results.metrics[0])
        if mixed is not None:
            _append(page, mixed)
    merged = [tables.convexification(results, protocol, size) for size in results.sizes]
    if any(merged):
        page.section("Sequential convexification", level=3)
        page.figure(
            convexification_figure(results, protocol),
            alt=f"{results.metrics[0]} and CSAT against the number of merged rules, protocol "
            f"{protocol}; the numbers are in the tables below.",
            caption="Mean over the seeds; bars from the least to the most. Rules merged in "
            "declaration order, and in the order in which merging tightens most.",
        )
        for table in merged:
            if table is not None:
                _append(page, table)
    if sizes:
        page.section("Cost", level=3)
        _append(page, tables.overhead(results, protocol))
        if results.rules:
            page.section("Rule by rule", level=3)
            for split in results.splits:
                _append(page, tables.each_rule(results, protocol, sizes[-1], split))


def _any_at(results: Results, protocol: str, size: int) -> bool:
    return any(size in results.sizes_of(method, protocol) for method in results.methods)


def _append(page: Page, table: Table) -> None:
    page.table(table.headers, table.rows, caption=table.caption, numbers=True)


def _told(settings: dict[str, Any]) -> str:
    """A protocol in words."""
    if not settings:
        return ""
    parts = [
        f"{title}: {_stage(settings[key])}"
        for key, title in (("base", "First stage"), ("finetune", "Second stage"))
    ]
    who = (
        "all methods have both stages"
        if settings.get("both")
        else "methods that are not fine-tuned have the first only"
    )
    share = settings.get("validation")
    kept = f" {100 * share:g} % of the samples are kept back to choose the best." if share else ""
    return f"{'. '.join(parts)}. AdamW without weight decay; {who}.{kept}"


def _stage(stage: dict[str, Any]) -> str:
    unit = "epoch" if stage.get("epochs") else "step"
    count = stage[f"{unit}s"]
    length = f"{count} {unit}{'' if count == 1 else 's'}"
    return f"{length}, batch {stage['batch']}, rate {stage['rate']:g}"
