"""Kernels of the exact engine."""
