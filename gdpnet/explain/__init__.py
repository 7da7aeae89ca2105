"""Why an output was moved: rules, rows and bounds by name."""
