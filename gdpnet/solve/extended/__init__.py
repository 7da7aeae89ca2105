"""Relaxations written out as linear programs: extended formulations in copies of y."""
