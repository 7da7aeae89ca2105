// Which row or basic column leaves the basis: how far each is from holding, and how violations are compared.
//
// Looking at all rows takes longer than the pivot itself, so that their excesses are kept and follow each pivot
// through the few columns that it moves; before a point is called optimal they are computed anew.
//
// A violation counts by its square over a reference weight (Devex, Forrest and Goldfarb 1992): what a quantity
// is worth when it leaves is its distance to feasibility measured by the length of its line of the tableau, which
// the weight stands for. It needs the column of the entering quantity alone, which the excesses follow anyway.
#pragma once

#include <algorithm>

#include "gdpnet/extended/dictionary.hpp"

namespace gdpnet::extended {

class Pricing {
public:
    Pricing(Index columns, Index rows, Index entries);

    // Begins with the enforced rows of a dictionary, at its point.
    void begin(const Dictionary& dictionary, const SparseRows& rows);

    // The excesses of all rows, computed anew.
    void recompute(const Dictionary& dictionary, const SparseRows& rows);

    // A pivot: what leaves, and the inverse of the entry of its line that belongs to the entering quantity; then
    // how every basic column moves with that quantity; then what entered, and by how much.
    void begin_pivot(Small leaving, double inverse) { length_ = reference(leaving) * inverse * inverse; }
    void moves(Index j, double rate) {
        of_column_[j] = std::max(of_column_[j], rate * rate * length_);
        for (Small e = start_[j]; e < start_[j + 1]; ++e) rate_[row_[e]] += coefficient_[e] * rate;
    }
    void end_pivot(const Dictionary& dictionary, Small entering, double move);

    double excess(Index row) const { return excess_[row]; }
    double of_column(Index j) const { return of_column_[j]; }  // reference weights
    double of_row(Index row) const { return of_row_[row]; }
    bool fresh() const { return fresh_; }

private:
    double& reference(Small id) { return is_row(id) ? of_row_[row_of(id)] : of_column_[id]; }

    // Enforced rows by column.
    Buffer<Small> start_, row_;
    Buffer<double> coefficient_;
    Buffer<double> excess_;
    Buffer<double> rate_;  // of a row's excess as the entering quantity moves; 0 between pivots
    Buffer<double> of_column_, of_row_;
    double length_ = 1.0;                // reference weight of the entering quantity
    bool fresh_ = true;                  // whether the excesses have just been computed
};

}  // namespace gdpnet::extended
