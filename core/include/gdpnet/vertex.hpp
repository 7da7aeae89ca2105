// Derivatives of the projection, read off the final dictionary.
//
// At the optimum some columns follow the prediction, some rest on a bound, and the others are determined by as many
// tight rows:
//
//     A[T, D] z_D = b_T - A[T, N] z_N
//
// So the derivatives with respect to the prediction, the right sides and the coefficients need one small linear
// system a sample, and nothing else of the search.
//
// A whole number rests where it is when prediction and inputs move a little, whatever holds it: a bound, a row of its
// own, or tight rows. In the last case more rows are tight than continuous columns are left for them; the rest of the
// rows say the same of these columns (or x is on a kink), and as many independent ones as there are columns are taken.
#pragma once

#include "gdpnet/exact.hpp"

namespace gdpnet {

// Gradients of a loss, added to what is there (yhat: written where a column follows it). Those of rows are left out where
// there is no room for them.
struct Pullback {
    Matrix<double> gradient;  // (B, n): with respect to z, overwritten
    Matrix<double> yhat;      // (B, outputs)
    Matrix<double> bound;     // (B, m)
    Tensor<double> varying;   // (B, k, n)
};

void pull_back_vertex(const Rows& rows, Tensor<const double> varying, const Dictionaries& dictionaries,
                      Matrix<const double> z, const Pullback& to);

// Solves a square system by Gaussian elimination with row exchanges; the solution replaces `right`.
void solve_in_place(Matrix<double> matrix, Vector<double> right, Index size);

// Solves `size` independent equations in `width >= size` unknowns, those beyond a basis of them at 0. Every pivot is
// the largest entry left, so the basis is found on the way. `matrix` and `right` are overwritten.
void solve_independent(Matrix<double> matrix, Vector<double> right, Index size, Index width, Vector<double> solution);

}  // namespace gdpnet
