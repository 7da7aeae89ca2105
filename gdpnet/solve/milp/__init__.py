"""One mixed-integer program a sample, then checked: slow and certain."""
