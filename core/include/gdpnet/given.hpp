// What a sample of a component is given by, in the user's units.
#pragma once

#include "gdpnet/arrays.hpp"

namespace gdpnet {

struct Given {
    Vector<const bool> active;     // by clause: whether it applies
    Matrix<const double> varying;  // coefficients that depend on x, (k, n)
    Vector<const double> bound;    // right sides, (m,)
    Vector<const double> yhat;     // (outputs,)
    Vector<const double> weights;  // (outputs,)
};

}  // namespace gdpnet
