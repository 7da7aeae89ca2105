"""Kernels of the regularised program."""
