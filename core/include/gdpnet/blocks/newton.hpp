// Newton's equations of the regularised program of several blocks; see path.hpp for the program.
//
// A step needs one matrix M of the size of a copy for each copy, one for each block (W = sum of M^-1),
// and one for sigma; nothing grows with the square of the program.
#pragma once

#include "gdpnet/blocks/matrices.hpp"
#include "gdpnet/blocks/work.hpp"
#include "gdpnet/tolerances.hpp"

namespace gdpnet::blocks {

// On the central path, the stiffness of rows and signs is what it is.
constexpr double kAnyStiffness = kInfinity;

// Diagonal of the quadratic term.
template <class V>
inline double curvature(const Shape& shape, Index j, double eps) {
    return j < 2 * shape.outputs ? 2.0 * eps : eps;
}

// `g.v` of a row with the vector of a copy.
template <class V>
inline V along(const Shape& shape, const Work<V>& work, Index r, const V* vector) {
    const V* row = work.table + r * shape.width;
    V total = 0.0;
    for (Index a = shape.start[r]; a < shape.start[r + 1]; ++a) total += row[shape.entry[a]] * vector[shape.entry[a]];
    return total;
}

// Takes `pull` times a row from the right side of a copy.
template <class V>
inline void take_row(const Shape& shape, const Work<V>& work, Index r, V pull, V* right) {
    const V* row = work.table + r * shape.width;
    for (Index a = shape.start[r]; a < shape.start[r + 1]; ++a) right[shape.entry[a]] -= pull * row[shape.entry[a]];
}

// Whether a copy takes part in the derivative: 1, or 0. It does not if it has no weight; or if it is
// the copy of a product that is empty but for the room that rows are given, whose little weight is an
// artefact and whose multipliers are enormous.
template <class V>
inline V takes_part(const Shape& shape, Index copy, const Work<V>& work) {
    const V weight = work.x[copy * shape.width + 2 * shape.outputs];
    V largest = 0.0;
    for (Index e = shape.first_place[copy]; e < shape.first_place[copy + 1]; ++e)
        largest = most(largest, work.multiplier[e]);
    V genuine = where_less(V(kEnormous), largest, 0.0, 1.0);
    genuine = where_less(V(kLittleWeight), weight, 1.0, genuine);
    return where_less(weight, kNoWeight, 0.0, genuine);
}

// 1 for what is tight in the derivative, by its ratio of multiplier and slack; else 0.
template <class V>
inline V held(V ratio, double eps) {
    return where_less(V(kKink * eps), ratio, 1.0, 0.0);
}

// By which a row or a sign holds a copy: the ratio itself on the central path.
template <class V>
inline V stiffness(V ratio, double eps, double stiffest) {
    if (stiffest == kAnyStiffness) return ratio;
    const V within = where_less(ratio, eps / kKink, 0.0, ratio);
    return where_less(V(kKink * eps), ratio, stiffest, within);
}

// M of a copy, its lower triangle, into `work.factor`; and the reciprocals that belong to it.
template <class V>
inline void write_matrix(const Shape& shape, Index copy, double eps, double stiffest, Work<V>& work) {
    const Index width = shape.width, fixed = 2 * shape.outputs;
    V* matrix = work.factor;
    for (Index i = 0; i < width; ++i) {
        for (Index k = 0; k < i; ++k) matrix[i * width + k] = 0.0;
        V diagonal = curvature<V>(shape, i, eps);
        if (i <= fixed) {
            const Index at = copy * width + i;
            const V x = work.x[at], lower = work.lower[at];
            const V both = 1.0 / (x * lower);  // one division for two: they are slow
            work.per_x[at] = lower * both;
            work.per_lower[at] = x * both;
            diagonal += stiffness(lower * lower * both, eps, stiffest);
        }
        matrix[i * width + i] = diagonal;
    }
    for (Index e = shape.first_place[copy]; e < shape.first_place[copy + 1]; ++e) {
        const Index r = shape.row[e];
        V stiff = 1.0 / kCompliance < stiffest ? 1.0 / kCompliance : stiffest;
        if (!shape.equality[r]) {
            const V slack = work.slack[e], multiplier = work.multiplier[e];
            const V both = 1.0 / (slack * multiplier);
            work.per_slack[e] = multiplier * both;
            work.per_multiplier[e] = slack * both;
            stiff = stiffness(multiplier * multiplier * both, eps, stiffest);
        }
        const V* row = work.table + r * width;
        for (Index a = shape.start[r]; a < shape.start[r + 1]; ++a) {
            const Index i = shape.entry[a];
            const V scaled = stiff * row[i];
            V* line = matrix + i * width;
            for (Index b = shape.start[r]; b <= a; ++b) line[shape.entry[b]] += scaled * row[shape.entry[b]];
        }
    }
}

// M^-1 of every copy, W^-1 of every block, and the factors of the matrix of sigma.
// The coordinate of lambda, which sigma does not move, gets a unit row in the latter.
template <class V>
inline void factor_all(const Shape& shape, double eps, double stiffest, Work<V>& work) {
    const Index width = shape.width, square = width * width, fixed = 2 * shape.outputs;
    for (Index c = 0; c < shape.blocks; ++c) {
        for (Index copy = shape.first_copy[c]; copy < shape.first_copy[c + 1]; ++copy) {
            V* inverse = work.inverse + copy * square;
            write_matrix(shape, copy, eps, stiffest, work);
            invert(work.factor, width, eps, inverse);
            work.idle[copy] = 0;
            if (stiffest < kAnyStiffness) {
                const V part = takes_part(shape, copy, work);
                for (Index i = 0; i < square; ++i) inverse[i] = where_less(V(0.0), part, inverse[i], 0.0);
                work.idle[copy] = all_zero(part);
            }
        }
        for (Index i = 0; i < width; ++i) {
            for (Index k = 0; k <= i; ++k) {
                V total = 0.0;
                for (Index copy = shape.first_copy[c]; copy < shape.first_copy[c + 1]; ++copy)
                    total += work.inverse[copy * square + i * width + k];
                work.joined[i * width + k] = total;
            }
        }
        invert(work.joined, width, kTiny, work.block + c * square);
    }
    for (Index i = 0; i < width; ++i) {
        for (Index k = 0; k <= i; ++k) {
            V total = 0.0;
            for (Index c = 0; c < shape.blocks; ++c)
                if (i != fixed && k != fixed) total += work.block[c * square + i * width + k];
            work.joined[i * width + k] = total;
        }
    }
    work.joined[fixed * width + fixed] = 1.0;
    factorise(work.joined, width, kTiny);
}

// Solves for d_x, d_sums and d_shared. Given are the right sides of the copies in `right`,
// `sum x - sigma` in `d_sums`, and what the multipliers of the sums must still add up to in `vector`.
template <class V>
inline void solve_all(const Shape& shape, Work<V>& work) {
    const Index width = shape.width, square = width * width, fixed = 2 * shape.outputs;
    for (Index i = 0; i < width; ++i) work.d_shared[i] = 0.0 - work.vector[i];
    for (Index c = 0; c < shape.blocks; ++c) {
        V* pull = work.pull + c * width;
        for (Index i = 0; i < width; ++i) pull[i] = work.d_sums[c * width + i];
        for (Index copy = shape.first_copy[c]; copy < shape.first_copy[c + 1]; ++copy)
            if (!work.idle[copy]) add_product(work.inverse + copy * square, width, work.right + copy * width, pull);
        add_product(work.block + c * square, width, pull, work.d_shared);
    }
    work.d_shared[fixed] = 0.0;
    back_solve(work.joined, width, work.d_shared);
    for (Index c = 0; c < shape.blocks; ++c) {
        V* d_sums = work.d_sums + c * width;
        for (Index k = 0; k < width; ++k) {
            work.rest[k] = work.pull[c * width + k] - work.d_shared[k];
            d_sums[k] = 0.0;
        }
        add_product(work.block + c * square, width, work.rest, d_sums);
        for (Index copy = shape.first_copy[c]; copy < shape.first_copy[c + 1]; ++copy) {
            V* d_x = work.d_x + copy * width;
            for (Index k = 0; k < width; ++k) {
                work.rest[k] = work.right[copy * width + k] - d_sums[k];
                d_x[k] = 0.0;
            }
            if (!work.idle[copy]) add_product(work.inverse + copy * square, width, work.rest, d_x);
        }
    }
}

}  // namespace gdpnet::blocks
