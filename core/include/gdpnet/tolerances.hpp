// Constants and tolerances of the core, one section for each part.
#pragma once

#include "gdpnet/arrays.hpp"

namespace gdpnet {

// ---- the search, and the linear program at its nodes
constexpr double kFeasibility = 1e-10;  // a scaled row (largest coefficient about 1) is violated beyond this
constexpr double kAccepted = 1e-9;      // ... but no contradiction is concluded from less than this
constexpr double kFineFeasibility = 1e-14, kFineAccepted = 1e-12;  // the same where no tolerance is wanted
constexpr double kRounding = 1e-14;     // what arithmetic leaves of a whole number that rows determine, relative
constexpr double kDualSlack = 1e-11;    // Harris: how far a reduced cost may overshoot for a larger pivot
constexpr double kNoPivot = 1e-11;      // an entry below this counts as zero
constexpr double kSmallPivot = 1e-6;    // refactorise before trusting a pivot below this
constexpr double kDelicatePivot = 1e-4;  // of a basis: below it columns are computed to their last digits,
constexpr int kRefinements = 4;         // ... by so many steps
constexpr Index kRefactorAge = 60;      // pivots after which the tableau is built anew
constexpr double kImprovement = 1e-11;  // an incumbent must be beaten by this, relative to max(1, distance)
constexpr double kSameImportance = 1e-9;  // sets of rules that differ by less are equally cheap, relative to max(1, importance)
constexpr double kBoxRoom = 1e-8;       // that boxes leave around points, relative: more than a row or bound is violated by,
constexpr double kBoxEmpty = 1e-6;      // ... what empties them for certain, and what matters little
constexpr Index kBoxRounds = 8;         // by which one is drawn in
constexpr Index kBoxSteps = 1024, kBoxRules = 64;  // disjuncts that are tried for all of them; rules that one product decides
constexpr double kTableaus = 256e6;     // bytes for the tableaus of open nodes; deeper ones are built anew

// ---- the quadratic program at a node, and the least norm
constexpr double kAuxiliaryCurvature = 1e-4;
constexpr double kColumnTolerance = 1e-12;
constexpr double kDependent = 1e-12;     // squared sine of the angle between a row and the active ones
constexpr double kSmallRate = 1e-10;     // multipliers that change by less do not block a step
constexpr double kDependentPivot = 1e-15;   // of the factor of the active rows, relative to its diagonal
constexpr double kPriceSlack = 1e-13;    // of a ratio test, relative to the price
constexpr double kFirstPrice = 1e4, kPriceFactor = 1e2, kLastPrice = 1e8;
constexpr double kSameNorm = 1e-9;       // squared norms, in units of the distance, that count as equal
constexpr double kSameOutput = 1e-6;
constexpr double kBetterNorm = 1e-12;
constexpr Index kTieNodes = 1000;        // nodes after which equally good ones are not looked at any more
constexpr int kCentres = 60;             // centres of the auxiliaries tried at a node
constexpr double kSettled = 1e-11;       // a pull of the centres that does not matter
constexpr double kFar = 1e5;             // in units of the distance

// ---- the Euclidean projection
constexpr double kCentreCurvature = 0x1p-14;   // of columns without cost, in units of their own
constexpr double kSlowCentres = 0.05;          // centres that keep more than this of their way are helped on
constexpr int kCentresOfOneCurvature = 15;
constexpr double kLooser = 0x1p-5;             // ... the next curvature, as a share
constexpr double kNearlySettledPull = 1e-10;   // as below, after so many centres
constexpr double kSettledPull = 1e-12;         // of a centre, relative to the multipliers
constexpr double kLeastMultiplier = 1e-3;      // ... which count as at least this
constexpr double kTermRounding = 1e-15;        // of the terms of a row, relative: less is no violation
constexpr double kSmallViolation = 1e-6;       // only of less it is asked whether it is rounding
constexpr double kLargePrediction = 1e5;       // beside which digits of a point would be lost
constexpr double kSameDistance = 1e-10;        // distances that differ by less, relative, are equal,
constexpr double kSameDistanceFloor = 1e-12;   // ... or absolute
// ... by products of rows
constexpr Index kGramColumns = 32, kGramRows = 512;  // beyond which it works on columns
constexpr Index kTogether = 8;                  // rows that are looked ahead of together
constexpr double kRowRounding = 1e-12;         // of a row at a node, relative to its numbers: less is no violation
constexpr double kNearlyDependent = 1e-5;      // a smaller squared sine is left to columns,
constexpr double kParallel = 1e-20;            // ... but for rounding alone
constexpr double kDelicate = 1e-2;              // below which rounding is looked after
constexpr double kDoubtful = 1e3;               // contradictions within so many tolerances are left to columns, too,
constexpr double kDrifted = 1e-9;              // ... or within this share of the largest multiplier
constexpr double kFallRounding = 1e-12;        // of a squared sine

// ---- convex rows
constexpr Index kSpareCuts = 10;               // cuts of a row beyond the number of its columns
constexpr Index kCutRounds = 300;              // rounds of cuts at a node,
constexpr Index kCutRoundsOfColumn = 60;       // ... and more for each column
constexpr double kFineCut = 1e-3;              // rows are cut until they hold to this share of their tolerance
constexpr double kFinerCut = 1e-2;             // cuts are violated beyond this share of another row's tolerance
constexpr int kNewtonSteps = 14;
constexpr double kFarthestStep = 1e3;          // beyond which Newton's method is lost, relative to the point
constexpr double kNewtonStep = 1e-8;           // a step after which one more is the last, relative to the point
constexpr double kNewtonResidual = 1e-12;      // what may be left of an equation then, relative to its terms
constexpr double kNoPivotOfNewton = 1e-13;     // relative to the largest entry of a line
constexpr double kWrongMultiplier = 1e-9;      // of a wrong sign, relative to the largest
constexpr double kApex = 1e-9;                 // of a norm, relative to the size of its arguments: it has no gradient
constexpr double kSamePolished = 1e-11;        // a point that steps of the program left where it was, relative
constexpr double kThinRoom = 1e-13;            // that rows get where sets without an interior are in the way, relative:
                                               // what touches is then wider by its root, 3e-7
constexpr Index kTouchRounds = 30;             // of cuts, after which it is asked whether rows touch in a point; doubled
constexpr double kTouchDoubt = 5e-7;           // of the distance of such a point, relative
constexpr double kLeastArgument = 1e-300;      // of functions that end at 0

// ---- derivatives of points on a face
constexpr double kTight = 1e-9;              // relative to max(1, |b|, max|a|) of a row
constexpr double kDependentTight = 1e-10;    // squared sine of the angle between a tight row and those before it
constexpr double kTightArgument = 1e-5;      // of a curve that is 0: its arguments are, too
constexpr double kStiffness = 1e-12;         // of what nothing holds, relative to what curves do
constexpr double kAuxiliaryWeight = 1e-6;    // in place of a squared weight: auxiliaries cost nothing

// ---- the extended simplex of CNF and partial DNF
namespace extended {
constexpr double kDualSlack = 1e-11;   // Harris: how far a reduced cost may overshoot for a larger pivot
constexpr double kNoPivot = 1e-11;     // an entry below this counts as zero
constexpr double kSmallPivot = 1e-6;   // refactorise before trusting a pivot below this
constexpr Index kRefactorAge = 120;    // pivots after which the tableau is computed anew
constexpr double kSafePivot = 1e-7;    // the least pivot of a run after others came to a singular basis,
constexpr Index kSafeAge = 20;         // ... and its pivots until the tableau is computed anew
constexpr double kRaised = 1e-13;      // by less the objective has not moved, relative
constexpr double kImplied = 1e-12;     // a bound that other rows and bounds imply within this is left out, relative
constexpr double kDrift = 10.0;        // tolerances by which a tight row of the final basis may miss its right side
constexpr double kLostBound = 1e-9;    // of the objective: less that is not proved is rounding, relative
constexpr double kLargePrice = 1e3;    // multipliers beyond which what is proved is computed at twice the precision
}  // namespace extended

// ---- the regularised program of the DNF
constexpr double kReach = 1e-9;           // by which the band is wider, relative to max(1, distance): rounding
constexpr double kSamePoint = 1e-9;       // vertices of products that are one, in every column
constexpr double kNoChange = 1e-8;        // rates of a price that count as 0, in multiples of eps
constexpr Index kFreshAge = 8;            // pivots after which a vertex is computed anew before it is kept
constexpr double kSingular = 1e-13;       // pivots that count as 0, of rows with a largest coefficient of about 1
constexpr double kLeastWeight = 1e-6;     // pieces are computed for no less; a breakpoint below is not seen
constexpr Index kVisits = 16;             // products looked at beyond the cap, in multiples of it
constexpr int kPieceRounds = 60;          // of Newton's method for the weights
constexpr double kSameWeight = 1e-12;     // a step of the weights that is none
constexpr double kNoWorse = 1e-14;        // rise of the objective that is none, relative to max(1, objective)
constexpr double kLeastStep = 1e-4;       // share of a Newton step after which it is taken as it is
constexpr double kWithinLimit = 1e-9;     // weights so near to a vertex's limit count as beyond, relative

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
