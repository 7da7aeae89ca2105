"""Relaxations by name, as the command line and `compare` take them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from gdpnet.errors import InputError
from gdpnet.model import RuleModel
from gdpnet.plan.planner import choose
from gdpnet.relaxation.plan import Plan
from gdpnet.solve import Backend, Exact, Extended, backend_of, names

_NUMBERED = {"pdnf": "K", "plan": "BUDGET"}


@dataclass(frozen=True)
class Relaxation:
    """A relaxation and the solver it is given to.

    Attributes:
        label: what tables call it.
        kind: `"cnf"`, `"pdnf"`, `"plan"`, `"adaptive"` or `"dnf"`.
        number: K of `pdnf:K`, the budget of `plan:BUDGET`; else None.
        solver: as in `gdpnet.project`.
        plan: the clusters, where they are known already.
    """

    label: str
    kind: str
    number: int | None = None
    solver: str = "auto"
    plan: Plan | None = None

    def resolve(self, rules: RuleModel, yhat: Any, x: Any) -> str | Plan:
        """What `gdpnet.project` takes; `plan:BUDGET` is planned on the samples."""
        if self.plan is not None:
            return self.plan
        if self.kind == "plan":
            return choose(rules, self.number or 0, yhat, x)
        return self.kind

    @property
    def backend(self) -> Backend:
        """Who solves it."""
        if self.solver != "auto":
            return backend_of(self.solver)
        return Exact() if self.kind == "dnf" else Extended()

    @property
    def written_out(self) -> bool:
        """Whether a linear program is made."""
        return self.backend.capabilities.relaxations

    def describe(self, plan: Plan | None = None) -> str:
        """One sentence for a reader who meets it first.

        Args:
            plan: what `resolve` gave.
        """
        merged = ""
        if plan is not None:
            clusters = [" + ".join(c) for c in plan.clusters if len(c) > 1]
            merged = f" ({'; '.join(clusters) or 'none'})"
        what = {
            "cnf": "every rule convexified by itself",
            "pdnf": f"the first {self.number} rules merged by basic steps{merged}",
            "plan": (
                "rules merged by basic steps"
                if self.number is None
                else f"rules merged by basic steps within a budget of {self.number} products"
            )
            + merged,
            "adaptive": "CNF, then basic steps on what is broken, sample by sample, until all hold",
            "dnf": "all rules that hang together merged, which is exact",
        }[self.kind]
        return f"{what}; {self.backend.description}"


def usual_relaxations(rules: RuleModel) -> list[Relaxation]:
    """What is compared where nothing is asked for: a single rule has nothing to merge."""
    partial = ["pdnf:2", "plan:4"] if len(rules.names) > 1 else []
    return [parse(text, rules) for text in ["cnf", *partial, "adaptive", "dnf", "dnf:highs"]]


def parse_all(asked: str | Sequence[str | Plan], rules: RuleModel) -> list[Relaxation]:
    """Relaxations of a list, or of text with commas; each once."""
    if isinstance(asked, str):
        asked = [text.strip() for text in asked.split(",") if text.strip()]
    found = [parse(one, rules) for one in asked]
    if not found:
        raise InputError("relaxations: expected at least one, such as 'cnf' or 'dnf'; got none.")
    return list({one.label: one for one in found}.values())


def parse(asked: str | Plan, rules: RuleModel) -> Relaxation:
    """One relaxation.

    Args:
        asked: `NAME`, `NAME:SOLVER`, `NAME:NUMBER`, `NAME:NUMBER:SOLVER`, or a `Plan`.
        rules: the rules it is for.
    """
    if isinstance(asked, Plan):
        asked.indices(rules)
        return Relaxation(repr(asked), "plan", plan=asked)
    if not isinstance(asked, str):
        raise InputError(f"relaxations: expected names and Plans, got {type(asked).__name__}.")
    kind, *rest = asked.strip().split(":")
    if kind not in ("cnf", "pdnf", "plan", "adaptive", "dnf"):
        raise InputError(
            f"relaxations: {asked!r} is none that is known. Expected cnf, pdnf:K, plan:BUDGET, "
            "adaptive or dnf, with a solver after it where wanted, such as dnf:highs."
        )
    number = None
    if kind in _NUMBERED:
        if not rest or not rest[0].isdecimal():
            raise InputError(
                f"relaxations: {asked!r} needs a whole number, {kind}:{_NUMBERED[kind]}, such as "
                f"{kind}:{4 if kind == 'plan' else 2}."
            )
        number, rest = int(rest[0]), rest[1:]
    solver = ":".join(rest) if rest else "auto"
    able = (s for s in names() if kind == "dnf" or backend_of(s).capabilities.relaxations)
    known = ["auto", *able]
    if solver not in known:
        raise InputError(
            f"relaxations: {asked!r} names the solver {solver!r}; expected one of "
            f"{', '.join(known)} for {kind}."
        )
    plan = Plan.lexicographic(rules, number) if kind == "pdnf" and number is not None else None
    if kind == "plan" and not number:
        raise InputError(f"relaxations: {asked!r} has no budget; expected at least 1 product.")
    return Relaxation(asked.strip(), kind, number, solver, plan)
