// Predictions that are good enough as they are.
#pragma once

#include "gdpnet/assignment.hpp"
#include "gdpnet/sample.hpp"

namespace gdpnet {

// Whether a prediction satisfies bounds, globals and active rules within a tolerance, by looking at rows alone, with
// disjuncts that cost nothing; if so, `truth` gets which of these hold.
//
// The tolerance is relative to max(|b|, max|a|) of a row: not looser than in `RuleModel.satisfied`, and as strict for
// small units as for large ones.
bool accepts(const Sample& sample, const Assignment& assignment, Vector<const double> yhat, double tolerance,
             Vector<Truth> truth);

}  // namespace gdpnet
