// Which row or basic column leaves the basis: how far each is from holding, and how violations are compared.
//
// Looking at all rows takes longer than the pivot itself, so that their excesses are kept and follow each pivot
// through the few columns that it moves; before a point is called optimal they are computed anew.
//
// A violation counts by its square over a reference weight (Devex, Forrest and Goldfarb 1992): what a quantity
// is worth when it leaves is its distance to feasibility measured by the length of its line of the tableau, which
// the weight stands for. It needs the column of the entering quantity alone, which the excesses follow anyway.
#pragma once

#include <vector>

#include "gdpnet/extended/dictionary.hpp"

namespace gdpnet::extended {

class Pricing {
public:
    Pricing(Index columns, Index rows, Index entries);

    // Begins with the enforced rows of a dictionary, at its point.
    void begin(const Dictionary& dictionary, const SparseRows& rows);

    // The excesses of all rows, computed anew.
    void recompute(const Dictionary& dictionary, const SparseRows& rows);

    // The entering quantity moves basic column j at this rate, relative to itself.
    void moves(Index j, double rate) {
        for (Small e = start_[j]; e < start_[j + 1]; ++e) rate_[row_[e]] += coefficient_[e] * rate;
    }

    // Ends a pivot: the entering quantity moved by `move`; `leaving` left, its entry in the tableau was 1 / inverse.
    void end_pivot(const Dictionary& dictionary, Small entering, Small leaving, double move, double inverse);

    // Basic column j, whose entry in the column of the entering quantity is `factor`, before `end_pivot`.
    void compare_column(Index j, double factor) {
        const double length = factor * factor * scale_;
        if (length > of_column_[j]) of_column_[j] = length;
    }
    // The leaving quantity is known, and the inverse of its entry.
    void begin_pivot(Small leaving, double inverse) { scale_ = reference(leaving) * inverse * inverse; }

    double excess(Index row) const { return excess_[row]; }
    double of_column(Index j) const { return of_column_[j]; }
    double of_row(Index row) const { return of_row_[row]; }
    bool fresh() const { return fresh_; }

private:
    double& reference(Small id) { return is_row(id) ? of_row_[row_of(id)] : of_column_[id]; }

    // Enforced rows by column.
    Buffer<Small> start_, row_;
    Buffer<double> coefficient_;
    Buffer<double> excess_, rate_;
    Buffer<double> of_column_, of_row_;  // reference weights
    double scale_ = 1.0;
    bool fresh_ = true;  // whether the excesses have just been computed
};

}  // namespace gdpnet::extended
