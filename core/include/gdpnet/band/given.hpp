// What the regularised program of a batch is given, beside its component.
#pragma once

#include "gdpnet/arrays.hpp"

namespace gdpnet::band {

struct Given {
    Tensor<const double> varying;  // coefficients that depend on x, (B, k, n)
    Matrix<const double> bound;    // right sides, (B, m)
    Matrix<const double> yhat;     // predictions within the box, (B, outputs)
    Vector<const double> weights;  // (outputs,)
    double eps = 0.0;              // the regularisation
    Matrix<const double> price{};  // of the booleans that have one, (B, priced)
    double price_unit = 1.0;       // what prices are divided by
};

}  // namespace gdpnet::band
