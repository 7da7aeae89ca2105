// What the samples of a component are given by, in the user's units.
#pragma once

#include "gdpnet/arrays.hpp"

namespace gdpnet {

struct SetsOfBatch;

struct Given {
    Vector<const bool> active;     // by clause: whether it applies
    Matrix<const double> varying;  // coefficients that depend on x, (k, n)
    Vector<const double> bound;    // right sides, (m,)
    Vector<const double> yhat;     // (outputs,)
    Vector<const double> weights;  // (outputs,)
};

// All samples of a call.
struct Batch {
    Matrix<const bool> active;     // (B, clauses)
    Tensor<const double> varying;  // (B, k, n)
    Matrix<const double> bound;    // (B, m)
    Matrix<const double> yhat;     // (B, outputs)
    Vector<const double> weights;  // (outputs,)
    Matrix<const double> price{};  // (B, priced)
    double price_unit = 1.0;       // what is minimised is measured in this; prices are divided by it
    const SetsOfBatch* leaving = nullptr;  // which rules may be left out, where some may; see leaving.hpp

    Index size() const { return yhat.lines; }
    Given operator[](Index s) const { return {active[s], varying[s], bound[s], yhat[s], weights}; }
};

}  // namespace gdpnet
