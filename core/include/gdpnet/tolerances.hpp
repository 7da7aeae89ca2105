// Constants and tolerances of the core, one section for each part.
#pragma once

#include "gdpnet/arrays.hpp"

namespace gdpnet {

// ---- the search, and the linear program at its nodes
constexpr double kFeasibility = 1e-10;  // a scaled row (largest coefficient about 1) is violated beyond this
constexpr double kAccepted = 1e-9;      // ... but no contradiction is concluded from less than this
constexpr double kRounding = 1e-14;     // what arithmetic leaves of a whole number that rows determine, relative
constexpr double kDualSlack = 1e-11;    // Harris: how far a reduced cost may overshoot for a larger pivot
constexpr double kNoPivot = 1e-11;      // an entry below this counts as zero
constexpr double kSmallPivot = 1e-6;    // refactorise before trusting a pivot below this
constexpr Index kRefactorAge = 60;      // pivots after which the tableau is built anew
constexpr double kImprovement = 1e-11;  // an incumbent must be beaten by this, relative to max(1, distance)
constexpr double kTableaus = 256e6;     // bytes for the tableaus of open nodes; deeper ones are built anew

// ---- the quadratic program at a node, and the least norm

// ---- the extended simplex of CNF and partial DNF
namespace extended {
constexpr double kDualSlack = 1e-11;   // Harris: how far a reduced cost may overshoot for a larger pivot
constexpr double kNoPivot = 1e-11;     // an entry below this counts as zero
constexpr double kSmallPivot = 1e-6;   // refactorise before trusting a pivot below this
constexpr Index kRefactorAge = 60;     // pivots after which the tableau is computed anew
constexpr double kRaised = 1e-13;      // by less the objective has not moved, relative
constexpr double kDrift = 10.0;        // tolerances by which a tight row of the final basis may miss its right side
}  // namespace extended

// ---- the regularised program of the DNF

// ---- the interior point of CNF and partial DNF
namespace blocks {
constexpr double kEnd = 1e-11;           // of the central path, relative to the weights
constexpr double kResidual = 1e-10;      // of the linear equations there, relative to that at the start
constexpr Index kRounds = 60;            // steps until then
constexpr double kInside = 0.995;        // share of the way to the boundary that a step takes
constexpr double kRoom = 1e-9;           // that rows are given, so that copies of empty products have an inside
constexpr double kCompliance = 1e-8;     // of an equality, against the quadratic term
constexpr double kNoWeight = 1e-6;       // of a copy that takes no part in the derivative
constexpr double kLittleWeight = 1e-3;   // ... nor with this, if its multipliers are
constexpr double kEnormous = 1e3;        // where the largest weight of an output is 1
// In the derivative, of multiplier / slack against eps: beyond this the row is tight, below the
// reciprocal it is not, and in between the end of the central path does not tell.
constexpr double kKink = 30.0;
constexpr double kStiffest = 1e4;        // in the derivative, in units of eps
constexpr double kHeld = 1e-10;          // how far what is tight may give way there, relative to the largest change
constexpr Index kHolds = 200;            // iterations until then
constexpr double kTiny = 1e-300;         // instead of a pivot or a measure of 0
}  // namespace blocks

}  // namespace gdpnet
