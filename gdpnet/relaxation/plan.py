"""Plan: which rules are merged by basic steps."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pkgutil import resolve_name

from gdpnet.errors import InputError, RuleError
from gdpnet.ir.rules import Rules

_NUMBERED = ("pdnf", "plan")
# By name, for it stands on projections and those on plans.
_PLANNER = "gdpnet.plan.planner:choose"


def _planned(_: Rules) -> dict[str, Plan]:
    """What was planned before, by its shorthand."""
    return {}


@dataclass(frozen=True)
class Plan:
    """Clusters of rules to merge; every other rule is convexified by itself.

    For a sample, the active rules of a cluster are merged by basic steps into one disjunction whose
    terms are their products; the hulls of all clusters are intersected. No cluster at all is the
    CNF, one cluster of all rules the DNF.

    Attributes:
        clusters: names of the rules of each cluster.
        exact: whether the relaxation is known to be exact, because rules that interact are merged
            whole; None where nobody looked.

    Example:
        >>> import gdpnet
        >>> gdpnet.Plan((("hot", "busy"), ("fan", "chiller")))
        Plan(hot + busy, fan + chiller)
    """

    clusters: tuple[tuple[str, ...], ...] = ()
    exact: bool | None = field(default=None, compare=False)

    def __post_init__(self) -> None:
        if isinstance(self.clusters, str) or any(isinstance(c, str) for c in self.clusters):
            raise RuleError(
                "Plan: expected clusters of names, such as (('hot', 'busy'),); got "
                f"{self.clusters!r}."
            )
        object.__setattr__(self, "clusters", tuple(tuple(c) for c in self.clusters))
        seen: set[str] = set()
        for cluster in self.clusters:
            if not cluster:
                raise RuleError("Plan: a cluster is empty. Leave it out.")
            for name in cluster:
                if name in seen:
                    raise RuleError(
                        f"Plan: the rule '{name}' stands twice. A rule can be merged once; put all "
                        "rules it is to be merged with into one cluster."
                    )
                seen.add(name)

    @classmethod
    def cnf(cls) -> Plan:
        """No basic step: every rule by itself."""
        return cls()

    @classmethod
    def dnf(cls, rules: Rules) -> Plan:
        """All rules merged."""
        return cls.lexicographic(rules, len(rules.names))

    @classmethod
    def lexicographic(cls, rules: Rules, k: int) -> Plan:
        """The first k rules in declaration order merged, as in the paper.

        Args:
            rules: the rules.
            k: 0 and 1 are the CNF, the number of rules is the DNF.
        """
        if not isinstance(k, int) or not 0 <= k <= len(rules.names):
            raise RuleError(
                f"Plan.lexicographic: expected k from 0 to {len(rules.names)}, the number of "
                f"rules, got {k!r}."
            )
        return cls((rules.names[:k],)) if k > 1 else cls()

    @classmethod
    def of(cls, relaxation: str | Plan, rules: Rules) -> Plan | None:
        """What a relaxation merges, from whatever a user may write; None for the DNF.

        Args:
            relaxation: a plan, or a shorthand that `parse` knows.
            rules: the rules it is for; raises where they have not the rules it names.
        """
        if isinstance(relaxation, str) and relaxation == "dnf":
            return None  # what interacts is merged, which is as good as all of it
        plan = relaxation if isinstance(relaxation, Plan) else cls.parse(relaxation, rules)
        plan.indices(rules)
        return plan

    @classmethod
    def parse(cls, text: str, rules: Rules) -> Plan:
        """A plan from its shorthand.

        Args:
            text: `"cnf"`; `"dnf"`; `"pdnf:K"`: the first K rules merged; `"plan:BUDGET"`: as
                `gdpnet.plan.choose` plans within a budget of products.
            rules: the rules it is for.

        Example:
            >>> import pyomo.environ as pyo, gdpnet
            >>> m = pyo.ConcreteModel()
            >>> m.y = pyo.Var(bounds=(0, 10))
            >>> m.low = gdpnet.rule(gdpnet.any_of(m.y <= 3, m.y >= 5))
            >>> m.high = gdpnet.rule(gdpnet.any_of(m.y <= 6, m.y >= 7))
            >>> gdpnet.Plan.parse("pdnf:2", gdpnet.RuleModel(m, outputs=[m.y]))
            Plan(low + high)
        """
        kind, _, number = str(text).partition(":")
        if isinstance(text, str) and text in ("cnf", "dnf"):
            return cls.cnf() if text == "cnf" else cls.dnf(rules)
        if not isinstance(text, str) or kind not in _NUMBERED or not number.isdecimal():
            raise InputError(
                "relaxation: expected 'dnf', 'cnf', 'pdnf:K' or 'plan:BUDGET' with a whole number, "
                f"a gdpnet.Plan or, to project, 'adaptive'; got {text!r}."
            )
        if kind == "pdnf":
            return cls.lexicographic(rules, int(number))
        known = rules.cache[_planned]
        if text not in known:
            known[text] = resolve_name(_PLANNER)(rules, int(number))
        return known[text]

    def indices(self, rules: Rules) -> list[list[int]]:
        """Clusters as indices of rules; raises for a name that is no rule."""
        place = {name: k for k, name in enumerate(rules.names)}
        for cluster in self.clusters:
            for name in cluster:
                if name not in place:
                    known = ", ".join(rules.names[:8]) + (", ..." if len(place) > 8 else "")
                    raise RuleError(f"Plan: '{name}' is no rule of this model ({known}).")
        return [[place[name] for name in cluster] for cluster in self.clusters]

    def active(self, rules: Rules, active: Sequence[bool]) -> list[list[int]]:
        """Clusters of the rules that are active: merged ones, then every other by itself.

        Args:
            rules: the rules.
            active: which rules apply to a sample.
        """
        merged = [[r for r in cluster if active[r]] for cluster in self.indices(rules)]
        merged = [cluster for cluster in merged if cluster]
        taken = {r for cluster in merged for r in cluster}
        alone: Iterable[int] = (r for r, on in enumerate(active) if on and r not in taken)
        return [*merged, *([r] for r in alone)]

    def __repr__(self) -> str:
        merged = [" + ".join(cluster) for cluster in self.clusters if len(cluster) > 1]
        return f"Plan({', '.join(merged) or 'every rule by itself'})"
