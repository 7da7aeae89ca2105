"""Quantifier-free formulas over linear relations, turned into Disjunctions.

    m.dr_rule = gdpnet.rule(
        gdpnet.any_of(P <= 0.8, gdpnet.all_of(m.f <= 0.5, m.c <= 0.4)), when=m.dr >= 0.5
    )

Sets are closed: the negation of `a <= b` is `a >= b`, as in the paper.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from gdpnet.errors import RuleError
from gdpnet.extras import need
from gdpnet.ir.atoms import DEEPEST

# Writing a formula as one Disjunction multiplies; beyond this it is a mistake, not a rule.
_MOST_DISJUNCTS = 4096

Term = tuple[Any, ...]


@dataclass(frozen=True, eq=False)
class Formula:
    """A formula; combine it further with `any_of`, `all_of`, `none_of`, `implies`.

    Attributes:
        kind: "and", "or" or "not".
        parts: formulas and relations.
    """

    kind: str
    parts: tuple[Any, ...]
    _depth: int = field(init=False, repr=False, default=0)

    def __post_init__(self) -> None:
        inner = [part._depth for part in self.parts if isinstance(part, Formula)]
        object.__setattr__(self, "_depth", 1 + max(inner, default=0))
        if self._depth > DEEPEST:
            raise RuleError(
                f"gdpnet: the formula is nested more than {DEEPEST} deep. Split it into several "
                "rules, or hand over all parts at once: any_of(*parts), all_of(*parts)."
            )

    def __bool__(self) -> bool:
        raise RuleError(
            "A formula has no truth value of its own: combine formulas with gdpnet.all_of, "
            "gdpnet.any_of and gdpnet.none_of instead of and, or, not."
        )


def any_of(*parts: Any) -> Formula:
    """At least one part holds.

    Args:
        *parts: linear relations and formulas; at least one.

    Example:
        >>> import pyomo.environ as pyo, gdpnet
        >>> m = pyo.ConcreteModel()
        >>> m.y = pyo.Var(bounds=(0, 10))
        >>> m.gap = gdpnet.rule(gdpnet.any_of(m.y <= 3, m.y >= 7))
        >>> print(gdpnet.RuleModel(m, outputs=[m.y]).names)
        ('gap',)
    """
    return Formula("or", _spliced("or", _parts(parts, "any_of")))


def all_of(*parts: Any) -> Formula:
    """Every part holds.

    Args:
        *parts: linear relations and formulas; at least one.

    Example:
        >>> import pyomo.environ as pyo, gdpnet
        >>> m = pyo.ConcreteModel()
        >>> m.y = pyo.Var([1, 2], bounds=(0, 1))
        >>> low = gdpnet.all_of(m.y[1] <= 0.1, m.y[2] <= 0.1)
        >>> m.low = gdpnet.rule(gdpnet.any_of(m.y[1] >= 0.5, low))
        >>> len(m.low.disjuncts)
        2
    """
    return Formula("and", _spliced("and", _parts(parts, "all_of")))


def none_of(*parts: Any) -> Formula:
    """No part holds; relations are negated as closed sets, equalities cannot be negated.

    Args:
        *parts: linear inequalities and formulas; at least one.

    Example:
        >>> import pyomo.environ as pyo, gdpnet
        >>> m = pyo.ConcreteModel()
        >>> m.y = pyo.Var(bounds=(0, 10))
        >>> m.outside = gdpnet.rule(gdpnet.none_of(gdpnet.all_of(m.y >= 3, m.y <= 7)))
        >>> len(m.outside.disjuncts)
        2
    """
    return Formula("not", (Formula("or", _parts(parts, "none_of")),))


def implies(condition: Any, consequence: Any) -> Formula:
    """Where `condition` holds, `consequence` does; both are about outputs.

    What depends on inputs alone belongs into `rule(..., when=...)`.

    Args:
        condition: relation or formula.
        consequence: relation or formula.

    Example:
        >>> import pyomo.environ as pyo, gdpnet
        >>> m = pyo.ConcreteModel()
        >>> m.y = pyo.Var([1, 2], bounds=(0, 1))
        >>> m.follow = gdpnet.rule(gdpnet.implies(m.y[1] >= 0.5, m.y[2] >= 0.5))
        >>> len(m.follow.disjuncts)
        2
    """
    return any_of(none_of(condition), consequence)


def rule(formula: Any, when: Any = None, *, price: Any = None, importance: Any = None) -> Any:
    """A formula as a Pyomo Disjunction, to be assigned to a model.

    A conjunction at the top gives an IndexedDisjunction, one index a conjunct, never a product.

    Args:
        formula: relation or formula.
        when: condition under which it applies, as in the Suffix `active_when`; it is written into
            that Suffix of the block the rule is assigned to (made where there is none).
        price: what breaking it costs, in units of what is minimised; a number, or an expression in
            inputs. Written into the Suffix `rule_price` likewise; each conjunct has this price.
        importance: what leaving it out counts where rules contradict each other; written into the
            Suffix `rule_importance`.

    Returns:
        A Disjunction.

    Example:
        >>> import pyomo.environ as pyo, gdpnet
        >>> m = pyo.ConcreteModel()
        >>> m.Ta = pyo.Param(mutable=True)
        >>> m.f = pyo.Var(bounds=(0, 1))
        >>> m.c = pyo.Var(bounds=(0, 1))
        >>> m.hot = gdpnet.rule(gdpnet.any_of(m.c >= 0.45, m.f >= 0.75), when=m.Ta >= 28)
        >>> print(gdpnet.RuleModel(m, outputs=[m.f, m.c], inputs=[m.Ta]))
        RuleModel: 1 rule, 2 outputs, 1 input, 0 global constraints
          outputs
            f in [0, 1], c in [0, 1]
          inputs
            Ta
          rules
            hot: if Ta >= 28: c >= 0.45 or f >= 0.75
    """
    from pyomo.gdp import Disjunction

    from gdpnet.rules.conditions import ACTIVE_WHEN
    from gdpnet.rules.numbers import IMPORTANCES, PRICES

    said = {ACTIVE_WHEN: when, PRICES: price, IMPORTANCES: importance}
    conjuncts = [_disjuncts(part) for part in _conjuncts(_normal(formula, True))]

    def build(block: Any, *index: Any) -> list[list[Any]]:
        for suffix, value in said.items():
            if value is not None:
                _put(block, suffix, component, value)
        return [list(term) for term in conjuncts[index[0] if index else 0]]

    index_set = [range(len(conjuncts))] if len(conjuncts) > 1 else []
    component = Disjunction(*index_set, rule=build)
    return component


def _put(block: Any, name: str, component: Any, value: Any) -> None:
    from pyomo.environ import Suffix

    suffix = block.component(name)
    if suffix is None:
        suffix = Suffix(direction=Suffix.LOCAL)
        block.add_component(name, suffix)
    elif suffix.ctype is not Suffix:
        raise RuleError(
            f"'{suffix.name}' is a {suffix.ctype.__name__}, so gdpnet.rule cannot write into the "
            f"Suffix '{name}'. Rename it."
        )
    # It is put on the container: one entry for all of its conjuncts.
    suffix[component] = value


def _parts(parts: tuple[Any, ...], name: str) -> tuple[Any, ...]:
    if not parts:
        raise RuleError(f"gdpnet.{name}: expected at least one relation or formula, got none.")
    for part in parts:
        _check(part, f"gdpnet.{name}")
    return parts


def _spliced(kind: str, parts: tuple[Any, ...]) -> tuple[Any, ...]:
    """Parts of the same kind in their place: a formula grown in a loop stays flat."""
    found: list[Any] = []
    for part in parts:
        same = isinstance(part, Formula) and part.kind == kind
        found.extend(part.parts if same else [part])
    return tuple(found)


def _check(part: Any, where: str) -> None:
    if isinstance(part, Formula):
        return
    need("pyomo.gdp", None, f"{where} needs")
    from pyomo.core.expr.relational_expr import RelationalExpression

    if not isinstance(part, RelationalExpression):
        hint = " (a relation between two numbers?)" if isinstance(part, bool) else ""
        raise RuleError(
            f"{where}: expected a linear relation such as m.y <= 3 or another formula, got "
            f"{part!r}{hint}."
        )


def _normal(part: Any, wanted: bool) -> Any:
    """Negation normal form: "and" and "or" over relations."""
    if not isinstance(part, Formula):
        _check(part, "gdpnet.rule")
        return _closed(part) if wanted else _negated(part)
    if part.kind == "not":
        return _normal(part.parts[0], not wanted)
    kind = part.kind if wanted else {"and": "or", "or": "and"}[part.kind]
    return Formula(kind, tuple(_normal(p, wanted) for p in part.parts))


def _closed(relation: Any) -> Any:
    if getattr(relation, "strict", False) in (False, (False, False)):
        return relation
    raise RuleError(
        f"'{relation}' is strict: what it allows is not a closed set, so there may be no nearest "
        "output. Write <= or >=, with a margin where the boundary itself must not be reached."
    )


def _negated(relation: Any) -> Any:
    from pyomo.core.expr import relational_expr

    if isinstance(relation, relational_expr.RangedExpression):
        low, body, high = relation.args
        return Formula("or", (body <= low, body >= high))
    if isinstance(relation, relational_expr.InequalityExpression):
        left, right = relation.args
        return left >= right
    raise RuleError(
        f"'{relation}' cannot be negated: everything but a point is not a closed set. Say how far "
        "away it has to stay, for example any_of(y <= a - 0.1, y >= a + 0.1)."
    )


def _conjuncts(formula: Any) -> list[Any]:
    if isinstance(formula, Formula) and formula.kind == "and":
        return [c for part in formula.parts for c in _conjuncts(part)]
    return [formula]


def _disjuncts(formula: Any) -> list[Term]:
    """Disjunctive normal form: a list of conjunctions of relations."""
    if not isinstance(formula, Formula):
        return [(formula,)]
    if formula.kind == "or":
        return _without_absorbed([t for part in formula.parts for t in _disjuncts(part)])
    terms: list[Term] = [()]
    for part in formula.parts:
        further = _disjuncts(part)
        _refuse_too_many(len(terms) * len(further))
        terms = _without_absorbed([_joined(left, right) for left in terms for right in further])
    return terms


def _joined(left: Term, right: Term) -> Term:
    known = {id(relation) for relation in left}
    return left + tuple(r for r in right if id(r) not in known)


def _refuse_too_many(count: int) -> None:
    if count > _MOST_DISJUNCTS:
        raise RuleError(
            f"gdpnet.rule: the formula has more than {_MOST_DISJUNCTS} disjuncts when written as "
            "one Disjunction. Split it into several rules, or nest Disjunctions by hand."
        )


def _without_absorbed(terms: Sequence[Term]) -> list[Term]:
    """Drops a term that contains another one: it adds nothing to the union."""
    _refuse_too_many(len(terms))
    first: dict[frozenset[int], Term] = {}
    for term in terms:
        first.setdefault(frozenset(id(relation) for relation in term), term)
    by_size: dict[int, list[frozenset[int]]] = {}
    for key in first:
        by_size.setdefault(len(key), []).append(key)
    smaller: list[frozenset[int]] = []
    for size in sorted(by_size):
        # Terms of one size cannot contain each other: only smaller ones need a look.
        smaller += [k for k in by_size[size] if not any(other < k for other in smaller)]
    kept = set(smaller)
    return [term for key, term in first.items() if key in kept]
