"""Solvers of a projection: the exact engine, mixed-integer programs, extended formulations."""
