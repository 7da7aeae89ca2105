// Newton's method on what is active at a point: cuts come near, this ends it.
//
// With rows A x = b and curved rows g(x) = 0 active, and columns F free, the point is a solution of
//
//     curvature (x - centre) + cost + A' l + grad g' mu = 0    (on F)
//     A x = b,   g(x) = 0
//
// A step solves the linearised equations for a move and new multipliers at once. Columns are those of a program:
// z = origin + unit x.
//
// With `level` the curved rows are asked to be equal, not 0: g(x) = s for an s that is as small as can be, and their
// multipliers add up to 1.
#pragma once

#include <vector>

#include "gdpnet/curves.hpp"

namespace gdpnet {

class Polish {
public:
    explicit Polish(const Rows& rows);

    // ---- the equations
    std::vector<double> x;                         // (n,): where it starts, and ends
    std::vector<double> curvature, centre, cost;   // (n,)
    std::vector<double> origin, unit;              // (n,)
    bool level = false;

    // Forgets rows and free columns.
    void clear();
    void add_free(Index j) { position_[j] = free_count_, free_[free_count_++] = j; }

    // Room for one more row, (n,), to be written into; `right` is its right side. Rows come before curved ones.
    Vector<double> add_row(double right);
    void add_curved(Index c, double multiplier);

    Index rows() const { return row_count_; }
    Index curved() const { return line_count_ - row_count_; }
    Index place(Index k) const { return place_[k]; }               // of the k-th curved row
    Vector<double> row(Index k) { return lines_[k]; }
    Vector<double> gradient(Index k) { return lines_[row_count_ + k]; }  // of the k-th curved row, by column of x
    double row_multiplier(Index k) const { return multiplier_[k]; }
    double curved_multiplier(Index k) const { return multiplier_[row_count_ + k]; }

    // What the curved rows are at the end, of a `level` run.
    double height() const { return height_; }

    // False where it does not converge.
    bool run(const Sample& sample, CurvedRows& curved);

    // The derivative of what is minimised and of all rows, multipliers included, by a column.
    double slope(Index j);

    // z at x.
    const std::vector<double>& point() const { return z_; }

private:
    bool evaluate(const Sample& sample, CurvedRows& curved);
    bool step(const Sample& sample, CurvedRows& curved);
    bool solve(Index size);
    bool settled();

    Index free_count_ = 0, row_count_ = 0, line_count_ = 0;
    double height_ = 0.0;                  // s
    std::vector<Index> free_, position_;   // (n,)
    Table<double> lines_;                  // (2 n + curved rows, n): gradients of rows, then of curved rows
    std::vector<double> right_;            // by row
    std::vector<double> value_;            // by curved row: g
    std::vector<Index> place_;             // by curved row
    std::vector<double> multiplier_;       // by line
    std::vector<double> factor_;           // by line: by which its largest entry becomes 1
    Table<double> matrix_;
    std::vector<double> solution_, z_, start_;
};

}  // namespace gdpnet
