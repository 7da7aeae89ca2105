"""Options of HiGHS, Gurobi and Clarabel: one set for each purpose.

| set | goes with |
|---|---|
| `LINEAR` | linear programs: a vertex, at the smallest tolerances HiGHS accepts |
| `PERSISTENT` | a relaxation whose entries change from sample to sample |
| `INTEGER` | mixed-integer programs |
| `INTEGER_KNOWN` | the same, where a good point is known and what is missing is the proof |
| `FEASIBILITY` | whether rows are empty: HiGHS' own tolerances, so that what nearly fits is kept |
| `GUROBI` | every program in Gurobi |
| `GUROBI_PERSISTENT`, `GUROBI_INTEGER` | the same purposes there |
| `CLARABEL`, `CLARABEL_CAREFUL` | conic programs, and a second try |
| `CLARABEL_CLOSE` | conic programs of anybody |
"""

from __future__ import annotations

Options = dict[str, bool | int | float | str]

_SILENT: Options = {"output_flag": False, "threads": 1}

FEASIBILITY = _SILENT
LINEAR = _SILENT | {
    "solver": "simplex",
    "primal_feasibility_tolerance": 1e-10,
    "dual_feasibility_tolerance": 1e-10,
}
# Few pivots follow a change: weights that start at 1 cost less than exact ones.
PERSISTENT = LINEAR | {"simplex_dual_edge_weight_strategy": 1}
# Ten times the smallest feasibility tolerances: at the smallest, HiGHS 1.15 has called feasible
# programs infeasible and missed optima.
INTEGER = LINEAR | {
    "primal_feasibility_tolerance": 1e-9,
    "mip_feasibility_tolerance": 1e-9,
    "mip_rel_gap": 0.0,
    "mip_abs_gap": 0.0,
}
# Sub-programs that look for points took most of the time, and starting over most of the rest.
INTEGER_KNOWN = INTEGER | {
    "mip_heuristic_effort": 0.0,
    "mip_heuristic_run_rins": False,
    "mip_heuristic_run_rens": False,
    "mip_heuristic_run_root_reduced_cost": False,
    "mip_allow_restart": False,
}

GUROBI: Options = {
    "Threads": 1,
    "FeasibilityTol": 1e-9,
    "OptimalityTol": 1e-9,
    "IntFeasTol": 1e-9,
    "DualReductions": 0,  # tells infeasible from unbounded
}
GUROBI_PERSISTENT = GUROBI | {"Method": 1}  # dual simplex: a vertex, and the old basis serves
GUROBI_INTEGER = GUROBI | {"MIPGap": 0.0, "MIPGapAbs": 0.0}

# A point that misses the full tolerances is still one within the reduced ones. Presolve would
# forbid changing numbers in place.
CLARABEL: Options = {
    "verbose": False,
    "max_threads": 1,
    "presolve_enable": False,
    "tol_gap_abs": 1e-9,
    "tol_gap_rel": 1e-9,
    "tol_feas": 1e-9,
    "reduced_tol_gap_abs": 1e-7,
    "reduced_tol_gap_rel": 1e-7,
    "reduced_tol_feas": 1e-7,
}
# Where points and gradients are wanted to more digits: what it does not reach is no failure, as
# long as it is within the reduced tolerances.
CLARABEL_CLOSE = CLARABEL | {"tol_gap_abs": 1e-12, "tol_gap_rel": 1e-12, "tol_feas": 1e-12}
# For what it lost its way in: shorter steps, whose equations are solved to the last digits, and
# what is right to six digits is taken.
CLARABEL_CAREFUL = CLARABEL | {
    "max_step_fraction": 0.9,
    "max_iter": 400,
    "iterative_refinement_max_iter": 50,
    "iterative_refinement_reltol": 1e-15,
    "iterative_refinement_abstol": 1e-15,
    "reduced_tol_gap_abs": 1e-6,
    "reduced_tol_gap_rel": 1e-6,
    "reduced_tol_feas": 1e-6,
}
