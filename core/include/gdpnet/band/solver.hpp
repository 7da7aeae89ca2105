// The regularised quadratic program of the DNF for batches, one component.
//
//     minimise    sum_k w.eta_k + eps/2 sum_k (|z_k|^2 + |eta_k|^2 + lambda_k^2 + |a_k|^2)
//     subject to  A_k (z_k + lambda_k yhat, a_k) <= lambda_k b_k     rows of the product, globals
//                 lambda_k lower <= z_k + lambda_k yhat <= lambda_k upper, likewise a_k
//                 |z_k| <= eta_k,  sum_k lambda_k = 1,  lambda >= 0
//
// over the products k that are not empty; the answer is y = yhat + sum_k z_k. With v* the least
// distance w.|z| of a product, attained at (z*, a*), a product of distance v has weight only if
//
//     v < v* + eps (1 + 2 |z*|^2 + |a*|^2),
//
// which gdpnet/derivative/qp/dnf.py proves: only these are listed. Prices of what product k chooses are one more linear
// cost, c_k lambda_k, and part of its v.
#pragma once

#include <memory>

#include "gdpnet/band/backward.hpp"
#include "gdpnet/band/given.hpp"
#include "gdpnet/band/listing.hpp"
#include "gdpnet/band/pieces.hpp"
#include "gdpnet/band/products.hpp"
#include "gdpnet/threads.hpp"

namespace gdpnet::band {

// The projections of a batch.
struct Projected {
    Matrix<const bool> active;       // clauses that apply, (B, clauses)
    Matrix<const double> nearest;    // the points, auxiliaries included, (B, n)
    Matrix<const Truth> assignment;  // and their booleans, (B, booleans)
};

// What comes of it. Samples whose status is `passed` are left out.
struct Solution {
    Vector<std::int8_t> status;  // (B,), see Status
    Matrix<double> y;            // (B, outputs); as it was where there is no solution
    Vector<double> value;        // (B,): the optimal value is added
    Vector<Index> products;      // (B,): the number of products with weight is added
    Vector<bool> capped;         // (B,): set where not the whole band was mixed
};

// Gradients of a batch; see Pull.
struct Gradients {
    Matrix<const double> gradient;  // (B, outputs)
    Matrix<double> to_yhat;         // (B, outputs)
    Matrix<double> to_bound;        // (B, m)
    Tensor<double> to_varying;      // (B, k, n)
    Matrix<double> to_price{};      // (B, priced)
};

class Solver {
public:
    Solver(const Component& component, Choices choices);
    ~Solver();

    // At most `cap` products of a sample are mixed.
    Band solve(const Given& given, const Projected& projected, Index cap, const Solution& solution, Threads threads,
               Call& call);

    // The derivative at what `solve` found.
    void vjp(const Given& given, const Band& band, const Gradients& gradients, Threads threads, Call& call);

private:
    struct Workspace;

    const Component& component_;
    Choices choices_;
    Pool<Workspace> workspaces_;
    Pool<Adjoint> adjoints_;
};

}  // namespace gdpnet::band
