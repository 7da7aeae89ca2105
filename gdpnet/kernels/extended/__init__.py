"""Kernels of the extended formulation."""
