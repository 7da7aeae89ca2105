"""Lists products of disjuncts within a distance: the terms of the DNF that matter near the optimum.

The search stops deciding as soon as a point satisfies every rule; here every required clause gets
an explicit literal, so that each product of the DNF is met once. Products farther than the cutoff
are pruned by the bound of the linear program, empty ones by its infeasibility.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from gdpnet.kernels._jit import KERNEL, inner, source_stamp
from gdpnet.kernels.exact._clauses import choose
from gdpnet.kernels.exact._dictionary import (
    VALUE,
    distance_of,
    enforce,
    reset_basis,
    start_dictionary,
)
from gdpnet.kernels.exact._kernel import load_rows
from gdpnet.kernels.exact._simplex import OPTIMAL, TROUBLE, solve_node
from gdpnet.kernels.exact._stack import restore, save


@inner
def undecided(logic, tree, active):
    """The first required clause without a literal that was chosen, -1 where there is none."""
    for c in range(logic.clause_guard.size):
        guard = logic.clause_guard[c]
        if not active[c] or (guard >= 0 and tree.state[guard] != 1):
            continue
        decided = False
        for e in range(logic.clause_start[c], logic.clause_start[c + 1]):
            literal = logic.clause_literal[e]
            if tree.state[abs(literal) - 1] == (1 if literal > 0 else -1):
                decided = True
                break
        if not decided:
            return c
    return -1


def _compile(stamp: int) -> Any:
    @njit(cache=True, **KERNEL)
    def list_products(
        prepared, logic, active, varying, bound, yhat, weights, reach, work,
        count, distance, z, assignment,
    ):  # fmt: skip
        """Fills the lists of a batch."""
        dic, rows, tree = work.dictionary, work.rows, work.tree
        cap = distance.shape[1]
        for s in range(yhat.shape[0]):
            load_rows(work, prepared, varying[s], bound[s])
            start_dictionary(dic, prepared.lower, prepared.upper, yhat[s], weights)
            for k in range(tree.state.size):
                tree.state[k] = 0
            alive = True
            for e in range(prepared.global_rows.size):
                alive = alive and enforce(dic, rows, prepared.global_rows[e])
            level = 0
            found = stamp * 0  # the stamp makes the sources part of the cache's key
            while found >= 0:
                outcome = TROUBLE + 1
                if alive:
                    outcome = solve_node(dic, rows, np.inf)
                if outcome == TROUBLE:
                    found = -1
                    break
                if outcome == OPTIMAL and distance_of(dic) <= reach[s]:
                    c = undecided(logic, tree, active[s])
                    if c >= 0:
                        save(dic, tree, level)
                        tree.frame[level, 0] = c
                        tree.frame[level, 1] = logic.clause_start[c]
                        level += 1
                    else:
                        if found < cap:
                            distance[s, found] = distance_of(dic)
                            for j in range(z.shape[2]):
                                z[s, found, j] = dic.real[VALUE, j]
                            for k in range(tree.state.size):
                                assignment[s, found, k] = tree.state[k]
                        found += 1
                while level > 0:
                    c = tree.frame[level - 1, 0]
                    if tree.frame[level - 1, 1] < logic.clause_start[c + 1] and found <= cap:
                        break
                    level -= 1
                if level == 0:
                    break
                e = tree.frame[level - 1, 1]
                tree.frame[level - 1, 1] = e + 1
                if not restore(dic, rows, tree, level - 1):
                    reset_basis(dic)
                alive = choose(dic, rows, logic, tree, logic.clause_literal[e])
            count[s] = found

    return list_products


list_products = _compile(
    source_stamp(
        "kernels/exact/_dictionary",
        "kernels/exact/_simplex",
        "kernels/exact/_clauses",
        "kernels/exact/_stack",
        "kernels/exact/_kernel",
        "kernels/exact/_products",
    )
)
