"""The terms of a rule, and the products of several."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations, product
from typing import Any

from pyomo.gdp.disjunct import DisjunctData, DisjunctionData

from gdpnet.errors import RuleError
from gdpnet.relaxation.pyomo import walk

# Subsets of an OR whose indicators stand in logic are written out up to this many disjuncts.
_MOST_SUBSETS = 10


@dataclass(frozen=True)
class Alternative:
    """One way to satisfy a rule, what is nested in it included.

    Attributes:
        label: position of the disjunct where there is nothing more to it, else a running number.
        disjuncts: what holds; a nested disjunct stands behind its parent.
        truth: value of each indicator that this decides, by id.
    """

    label: int
    disjuncts: tuple[DisjunctData, ...]
    truth: dict[int, bool]

    @property
    def constraints(self) -> list[Any]:
        """Rows that hold."""
        return [c for disjunct in self.disjuncts for c in walk.constraints(disjunct)]


def alternatives(disjunction: DisjunctionData, tied: set[int]) -> list[Alternative]:
    """All ways to satisfy a Disjunction.

    At least one disjunct holds; overlapping disjuncts are fine, so one disjunct at a time is all
    there is to enumerate, whatever the xor flag. Only where indicators stand in logic does an OR
    choose any subset of their disjuncts.

    Args:
        disjunction: a rule.
        tied: ids of the indicators whose truth matters.
    """
    found: list[Alternative] = []
    plain = True
    for chosen, truth in _choices(disjunction, tied):
        inner = [alternatives(d, tied) for disjunct in chosen for d in walk.nested(disjunct)]
        plain = plain and len(chosen) == 1 and not inner
        for combination in product(*inner):
            disjuncts = [*chosen, *(d for below in combination for d in below.disjuncts)]
            decided = dict(truth)
            for below in combination:
                decided.update(below.truth)
            found.append(Alternative(len(found), tuple(disjuncts), decided))
    if plain:
        position = {id(d): k for k, d in enumerate(disjunction.disjuncts)}
        found = [Alternative(position[id(a.disjuncts[0])], a.disjuncts, a.truth) for a in found]
    return found


def _choices(
    disjunction: DisjunctionData, tied: set[int]
) -> list[tuple[tuple[DisjunctData, ...], dict[int, bool]]]:
    """Disjuncts chosen together, and what that says about the indicators."""
    possible = walk.possible(disjunction)
    if not possible:
        raise RuleError(
            f"Disjunction '{disjunction.name}' has no disjunct that can be chosen. Activate one, "
            "or deactivate the Disjunction."
        )
    forced = [d for d in possible if d.indicator_var.fixed]
    matters = any(id(d.indicator_var) in tied for d in possible)
    if disjunction.xor or not matters:
        if len(forced) > 1 and disjunction.xor:
            raise RuleError(
                f"Disjunction '{disjunction.name}': {len(forced)} indicators are fixed to true, "
                "but exactly one disjunct is chosen. Unfix all but one."
            )
        if forced:
            sets = [tuple(forced)]
        else:
            sets = [(d,) for d in possible]
    else:
        if len(possible) > _MOST_SUBSETS:
            raise RuleError(
                f"Disjunction '{disjunction.name}' is an OR of {len(possible)} disjuncts whose "
                f"indicators stand in logic; up to {_MOST_SUBSETS} can be written out. Use "
                "xor=True if one disjunct at a time is meant."
            )
        # Holding besides others matters only for what logic names.
        named = [d for d in possible if id(d.indicator_var) in tied and not d.indicator_var.fixed]
        several = [c for size in range(1, len(named) + 1) for c in combinations(named, size)]
        if forced:
            sets = [tuple(forced), *((*forced, *c) for c in several)]
        else:
            sets = [(d,) for d in possible] + [c for c in several if len(c) > 1]
    # Where nothing names the indicators of an OR, what is not chosen may hold all the same.
    false = disjunction.disjuncts if disjunction.xor or matters else ()
    unchosen = {id(d.indicator_var): False for d in false}
    return [(chosen, unchosen | {id(d.indicator_var): True for d in chosen}) for chosen in sets]


def products(
    rules: Sequence[Sequence[Alternative]],
    consistent: Callable[[dict[int, bool]], bool],
    push: Callable[[Alternative], bool] | None,
    pop: Callable[[], None],
    most: int,
    names: Sequence[str],
) -> list[tuple[Alternative, ...]]:
    """Combinations of one alternative of each rule, in the order of `itertools.product`.

    A combination is given up as soon as its first rules contradict logic or leave nothing.

    Args:
        rules: alternatives of each rule.
        consistent: whether truth values can be completed to what logic demands.
        push: adds the rows of an alternative and says whether a point is left; None to keep all.
        pop: takes the last rows away.
        most: number of products at which to stop.
        names: of the rules, for the message.
    """
    found: list[tuple[Alternative, ...]] = []

    def extend(chosen: list[Alternative], truth: dict[int, bool]) -> None:
        if len(chosen) == len(rules):
            found.append(tuple(chosen))
            if len(found) > most:
                total = 1
                for options in rules:
                    total *= len(options)
                raise RuleError(
                    f"Merging {', '.join(names)} gives more than {most:,} products (up to "
                    f"{total:,}). Merge fewer rules, or raise max_products; an exact projection "
                    "that needs no products is gdpnet.project(rules, yhat, x)."
                )
            return
        for option in rules[len(chosen)]:
            joined = truth | option.truth
            if not consistent(joined):
                continue
            if push is None:
                extend([*chosen, option], joined)
                continue
            if push(option):
                extend([*chosen, option], joined)
            pop()

    extend([], {})
    return found
