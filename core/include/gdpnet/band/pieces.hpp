// Weights of products whose vertices move: a quadratic program each, joined by one price.
//
// Given lambda_k = t, the copy of product k is t times the minimiser z' over the product of
//
//     sum_j w_j |z'_j| + t eps (sum_j z'_j^2 + 1/2 |a'|^2)
//
// and what product k adds to the objective has the derivative
//
//     g_k(t) = w |z'| + 2 t eps (|z'|^2 + 1/2 |a'|^2) + eps t,
//
// continuous, increasing and piecewise linear, with g_k(0) the product's distance v_k. The weights
// have the same price: g_k(lambda_k) = mu where lambda_k > 0, and v_k >= mu elsewhere. Newton's
// method on these lines, with a line search on the objective, ends on the right pieces.
#pragma once

#include "gdpnet/band/given.hpp"
#include "gdpnet/band/products.hpp"
#include "gdpnet/component.hpp"
#include "gdpnet/quadratic.hpp"
#include "gdpnet/units.hpp"
#include "gdpnet/watch.hpp"

namespace gdpnet::band {

class Pieces {
public:
    explicit Pieces(const Component& component);

    // Finds the weights of a sample whose products have been listed, and the pieces that hold them.
    // `nearest` is its projection, where integer columns stay. False where a quadratic program failed
    // or time is up.
    bool settle(const Given& given, Index s, Vector<const double> nearest, Products& products, Watch& watch);

private:
    // Bounds and rows of product p.
    void enforce_product(Vector<const double> nearest, Vector<const std::int8_t> state);
    // Enforces a row, as a bound if it has one entry.
    void add_row(Index i);
    // Whether the vertex that was listed is optimal at a weight: then the price is on its line.
    static bool keeps_vertex(const Products& products, Index p, double weight);
    // The piece of product p at a weight, and its share of the objective; false on failure.
    bool compute(Products& products, Index p, double weight);
    // Writes the point of the quadratic program and what holds it; false if there is no room.
    bool read(Products& products, Index p);

    const Component& component_;
    Quadratic program_;
    Units units_;                                     // x = w (z - yhat) for outputs, z for auxiliaries
    std::vector<double> zero_;                        // (n,)
    std::vector<Index> lower_source_, upper_source_;  // (n,): row with one entry that is a column's bound, or -1
    std::vector<double> before_, target_;             // by product: weights before a step, and after a whole one
    std::vector<double> computed_, share_;            // by product: weight of its piece, and share of the objective
    Vector<const double> weights_, nearest_;
    double eps_ = 0.0;
};

}  // namespace gdpnet::band
