"""Marker rules: genes that are high -> some class of a set is probable."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np

from gdpnet.bio._expression import Source, mean_expression
from gdpnet.bio._extra import name_unknown
from gdpnet.errors import InputError

if TYPE_CHECKING:
    from gdpnet.model import RuleModel


@dataclass(frozen=True)
class MarkerRule:
    """Mean expression of genes >= tau -> some class of a set has probability >= rho.

    Args:
        genes: one gene, or several whose mean counts.
        classes: one class, or several of which one is enough.
        tau: threshold of the mean expression; None takes that of `marker_rules`.
        rho: least probability; None takes that of `marker_rules`.
        name: what the rule is called; its genes, where not given.
        price: what breaking it costs, in units of what is minimised; None takes that of
            `marker_rules`, which makes it hard where there is none either.
        importance: what leaving it out counts where rules contradict each other; as price.

    Example:
        >>> from gdpnet.bio import MarkerRule
        >>> print(MarkerRule(["GNLY", "NKG7"], ["NK cells", "CD8 T cells"], tau=1.5, rho=0.5))
        GNLY+NKG7: mean(GNLY, NKG7) >= 1.5 -> NK cells or CD8 T cells >= 0.5
    """

    genes: Sequence[str]
    classes: Sequence[str]
    tau: float | None = None
    rho: float | None = None
    name: str = ""
    price: float | None = None
    importance: float | None = None

    def __post_init__(self) -> None:
        what = f"rule {self.name!r}" if self.name else "a rule"
        object.__setattr__(self, "genes", _names(self.genes, f"{what}: genes"))
        object.__setattr__(self, "classes", _names(self.classes, f"{what}: classes"))
        if not self.name:
            object.__setattr__(self, "name", "+".join(self.genes))

    def __str__(self) -> str:
        mean = self.genes[0] if len(self.genes) == 1 else f"mean({', '.join(self.genes)})"
        told = f"{self.name}: {mean} >= {_text(self.tau)} -> {self.consequence}"
        if self.price is not None:
            told += f", or broken for {self.price:g}"
        if self.importance is not None:
            told += f" (importance {self.importance:g})"
        return told

    @property
    def consequence(self) -> str:
        """What the rule asks for."""
        return f"{' or '.join(self.classes)} >= {_text(self.rho)}"


@dataclass(frozen=True)
class MarkerRules:
    """Rules of marker genes; made by `marker_rules`.

    Attributes:
        rules: the rules as a `gdpnet.RuleModel`: one input for each rule, its mean expression, and
            one output for each class, its probability.
        markers: what they were made from, in the same order.
        classes: the outputs, in order.
        source: where the expression of genes is looked up.
    """

    rules: RuleModel
    markers: tuple[MarkerRule, ...]
    classes: tuple[str, ...]
    source: Source

    @property
    def genes(self) -> tuple[str, ...]:
        """All genes, each once."""
        return tuple(dict.fromkeys(gene for marker in self.markers for gene in marker.genes))

    def expression(self, adata: Any) -> np.ndarray:
        """The inputs of the rules: mean expression of each rule's genes in each cell.

        Of a sparse matrix only the columns of these genes are looked at.

        Args:
            adata: an AnnData.

        Returns:
            `cells x rules`, float64.
        """
        return mean_expression(adata, [marker.genes for marker in self.markers], self.source)

    def __repr__(self) -> str:
        count = len(self.markers)
        head = f"MarkerRules: {count} rule{'' if count == 1 else 's'}, {len(self.classes)} classes"
        return "\n".join([f"{head}, genes in {self.source}", *(f"  {m}" for m in self.markers)])


def marker_rules(
    markers: Any,
    classes: Sequence[str],
    tau: Any,
    rho: Any = 0.5,
    *,
    price: Any = None,
    importance: Any = None,
    use_raw: bool | None = None,
    layer: str | None = None,
    gene_symbols: str | None = None,
    allow_counts: bool = False,
) -> MarkerRules:
    """Rules from marker genes: where they are high, some class of a set is probable.

    Each rule says: mean expression of its genes >= tau -> the probability of one of its classes
    is >= rho. Probabilities are non-negative and sum to 1. Rules that are active in the same cell
    may contradict each other (two classes cannot both have more than 0.5): such cells are told when
    the rules are applied, unless rules have prices, at which they may be broken.

    Args:
        markers: one of
            - a dict as scanpy has them, `{class: gene or genes}`; a key may also be a tuple of
              classes, one of which is enough,
            - a DataFrame with a column of genes for each class, shorter ones filled up with NaN, as
              of `rank_genes_groups`,
            - a DataFrame with a row for each rule and the columns `genes`, `classes` and, where
              wanted, `tau`, `rho`, `name`, `price`, `importance`,
            - a list of `MarkerRule`.
        classes: all classes, in the order of the probabilities.
        tau: threshold of the mean expression: a number, one for each rule, or `{name: number}`. A
            rule of a dict is called by its key; others by their genes joined by `+`.
        rho: least probability, above 0 and at most 1; as tau.
        price: what breaking a rule costs, in units of what is minimised (of the l1 distance moving
            a probability of 0.1 from one class to another costs 0.2): a number from 0 on, one for
            each rule, or `{name: number}`. Rules without a price are hard.
        importance: what leaving a rule out counts where `on_conflict="drop"` has to; positive, as
            price; 1 where not given.
        use_raw: look genes up in `.raw` (True), in `X` (False), or in `.raw` where there is one.
        layer: look genes up in this layer instead.
        gene_symbols: column of `.var` that holds the genes' names; None: its index.
        allow_counts: accept an expression that is not logarithmic, such as counts; without it that
            is taken for a mistake.

    Returns:
        The rules, with what is needed to compute their inputs from an AnnData.

    Example:
        >>> from gdpnet.bio import MarkerRule, marker_rules
        >>> classes = ["B cells", "NK cells", "CD8 T cells"]
        >>> marker_rules({"B cells": ["MS4A1", "CD79A"]}, classes, tau=1.0)
        MarkerRules: 1 rule, 3 classes, genes in .raw, or X where there is none
          B cells: mean(MS4A1, CD79A) >= 1 -> B cells >= 0.5
        >>> killers = MarkerRule("NKG7", ["NK cells", "CD8 T cells"], rho=0.6)
        >>> marker_rules([killers], classes, tau=1.5)
        MarkerRules: 1 rule, 3 classes, genes in .raw, or X where there is none
          NKG7: NKG7 >= 1.5 -> NK cells or CD8 T cells >= 0.6
        >>> marker_rules({"B cells": "MS4A1"}, classes, tau=1.0, price=0.3)
        MarkerRules: 1 rule, 3 classes, genes in .raw, or X where there is none
          B cells: MS4A1 >= 1 -> B cells >= 0.5, or broken for 0.3
    """
    known = _names(classes, "classes")
    drafts = list(_read(markers))
    if not drafts:
        raise InputError("markers: expected at least one rule, got none.")
    given = {"tau": tau, "rho": rho, "price": price, "importance": importance}
    for number, value in given.items():
        drafts = _filled(drafts, number, value, optional=number in ("price", "importance"))
    _check(drafts, known)
    source = Source(use_raw, layer, gene_symbols, allow_counts)
    return MarkerRules(_model(drafts, known), tuple(drafts), known, source)


# ---- reading -----------------------------------------------------------------------------


def _read(markers: Any) -> Iterable[MarkerRule]:
    if isinstance(markers, Mapping):
        for key, genes in markers.items():
            classes = (key,) if isinstance(key, str) else key
            name = " or ".join(_names(classes, f"markers: the key {key!r}"))
            yield MarkerRule(genes, classes, name=name)
    elif hasattr(markers, "columns") and hasattr(markers, "itertuples"):
        yield from _read_frame(markers)
    elif isinstance(markers, Sequence) and all(isinstance(m, MarkerRule) for m in markers):
        yield from markers
    else:
        raise InputError(
            "markers: expected a dict {class: genes}, a DataFrame or a list of "
            f"gdpnet.bio.MarkerRule, got {_described(markers)}."
        )


def _read_frame(frame: Any) -> Iterable[MarkerRule]:
    columns = [str(column) for column in frame.columns]
    if {"genes", "classes"} <= set(columns):
        names = [field.name for field in fields(MarkerRule)]
        unknown = set(columns) - set(names)
        if unknown:
            raise InputError(
                f"markers: a row for each rule has the columns {', '.join(names)}; "
                f"this DataFrame also has {', '.join(sorted(unknown))}. Drop what is no part of it."
            )
        for row in frame.to_dict("records"):
            given = {k: v for k, v in row.items() if k in ("genes", "classes") or not _missing(v)}
            yield MarkerRule(**given)
        return
    repeated = [name for name, count in Counter(columns).items() if count > 1]
    if repeated:
        raise InputError(f"markers: the column {repeated[0]!r} occurs twice.")
    for column in frame.columns:
        genes = [gene for gene in frame[column].tolist() if not _missing(gene)]
        yield MarkerRule(genes, (str(column),), name=str(column))


def _names(values: Any, what: str) -> tuple[str, ...]:
    """One name, or several, each once."""
    if isinstance(values, str):
        values = (values,)
    if not isinstance(values, Iterable):
        raise InputError(f"{what}: expected names, got {values!r}.")
    names = tuple(values)
    if not names:
        raise InputError(f"{what}: expected at least one name, got none.")
    wrong = [name for name in names if not isinstance(name, str) or not name.strip()]
    if wrong:
        raise InputError(f"{what}: expected names, got {wrong[0]!r} among them.")
    repeated = [name for name, count in Counter(names).items() if count > 1]
    if repeated:
        raise InputError(f"{what}: {repeated[0]!r} occurs twice. Name each once.")
    return names


def _filled(markers: list[MarkerRule], number: str, value: Any, optional: bool) -> list[MarkerRule]:
    """Rules whose number is that of the call where they have none of their own."""
    count = len(markers)
    if isinstance(value, Mapping):
        names = [marker.name for marker in markers]
        unknown = [str(name) for name in value if name not in names]
        if unknown:
            raise InputError(f"{number}: no rule is called {name_unknown(unknown, names)}.")
        values = [value.get(name) for name in names]
    elif isinstance(value, str) or np.ndim(value) == 0:
        values = [value] * count
    else:
        values = list(value)
        if len(values) != count:
            raise InputError(
                f"{number}: expected one number, or one for each of the {count} rules, got "
                f"{len(values)}."
            )
    filled = []
    for marker, default in zip(markers, values, strict=True):
        own = getattr(marker, number)
        chosen = default if own is None else own
        if chosen is None and optional:
            filled.append(marker)
            continue
        if not isinstance(chosen, Real) or isinstance(chosen, bool) or not math.isfinite(chosen):
            raise InputError(
                f"{number} of rule {marker.name!r}: expected a finite number, got {chosen!r}."
            )
        known: dict[str, Any] = {number: float(chosen)}
        filled.append(replace(marker, **known))
    return filled


# ---- checking ----------------------------------------------------------------------------


def _check(markers: Sequence[MarkerRule], classes: tuple[str, ...]) -> None:
    for marker in markers:
        unknown = [name for name in marker.classes if name not in classes]
        if unknown:
            raise InputError(
                f"rule {marker.name!r}: no class is called {name_unknown(unknown, classes)}. "
                f"Classes are {', '.join(classes)}."
            )
        assert marker.rho is not None
        if marker.rho > 1.0:
            raise InputError(
                f"rho of rule {marker.name!r}: a probability of at least {marker.rho:g} can never "
                "be had. Expected a number above 0 and at most 1."
            )
        if marker.rho <= 0.0:
            raise InputError(
                f"rho of rule {marker.name!r}: every probability is at least {marker.rho:g}, so "
                "the rule says nothing. Expected a number above 0 and at most 1."
            )
        if marker.price is not None and marker.price < 0.0:
            raise InputError(
                f"price of rule {marker.name!r}: expected a number from 0 on, got {marker.price:g}."
            )
        if marker.importance is not None and marker.importance <= 0.0:
            raise InputError(
                f"importance of rule {marker.name!r}: expected a positive number, got "
                f"{marker.importance:g}."
            )
    seen: dict[Any, MarkerRule] = {}
    for marker in markers:
        says = (frozenset(marker.genes), frozenset(marker.classes), marker.tau, marker.rho)
        if says in seen:
            raise InputError(
                f"rules {seen[says].name!r} and {marker.name!r} say the same. Drop one of them."
            )
        seen[says] = marker
    repeated = [name for name, count in Counter(m.name for m in markers).items() if count > 1]
    if repeated:
        raise InputError(
            f"two rules are called {repeated[0]!r}. Tell them apart by MarkerRule(..., name=...)."
        )


def _model(markers: Sequence[MarkerRule], classes: Sequence[str]) -> RuleModel:
    import pyomo.environ as pyo
    from pyomo.gdp import Disjunct

    from gdpnet.model import RuleModel

    by_name = {marker.name: marker for marker in markers}
    m = pyo.ConcreteModel("markers")
    m.expression = pyo.Param(list(by_name), mutable=True, initialize=0.0)
    m.p = pyo.Var(list(classes), bounds=(0, 1))
    m.total = pyo.Constraint(expr=sum(m.p.values()) == 1)

    @m.Disjunct([(marker.name, name) for marker in markers for name in marker.classes])
    def choice(chosen: Any, rule: str, name: str) -> None:
        chosen.least = pyo.Constraint(expr=m.p[name] >= by_name[rule].rho)

    @m.Disjunction(list(by_name))
    def marker(m: Any, rule: str) -> list[Disjunct]:
        return [m.choice[rule, name] for name in by_name[rule].classes]

    m.active_when = pyo.Suffix(direction=pyo.Suffix.LOCAL)
    for name, data in m.marker.items():
        m.active_when[data] = m.expression[name] >= by_name[name].tau
    prices = {m.marker[k]: one.price for k, one in by_name.items() if one.price is not None}
    numbers = {m.marker[k]: one.importance for k, one in by_name.items() if one.importance}
    return RuleModel(
        m, outputs=[m.p], inputs=[m.expression], prices=prices or None, importances=numbers or None
    )


def check_markers(markers: Any, needed_by: str) -> None:
    """Refuse what is no set of marker rules: arguments in another order, or a bare dict."""
    if not isinstance(markers, MarkerRules):
        raise InputError(
            f"{needed_by}: markers: expected what gdpnet.bio.marker_rules returns, got a "
            f"{type(markers).__name__}. The arguments are adata, markers, and then the rest."
        )


def _missing(value: Any) -> bool:
    return value is None or value == "" or (isinstance(value, float) and math.isnan(value))


def _text(number: float | None) -> str:
    return "?" if number is None else f"{number:g}"


def _described(value: Any) -> str:
    if isinstance(value, Sequence) and not isinstance(value, str):
        other = next((v for v in value if not isinstance(v, MarkerRule)), None)
        return f"a {type(value).__name__} with {other!r}"
    return type(value).__name__
