// Which rules hold at the points of a batch, where rows alone decide.
#pragma once

#include <vector>

#include "gdpnet/arrays.hpp"
#include "gdpnet/component.hpp"

namespace gdpnet {

// Lists behind each other: list k has entries start[k] to start[k + 1].
struct Lists {
    std::vector<Index> start, entry;

    Index count() const { return Index(start.size()) - 1; }
};

// Points to be judged. Further rows and columns than the judge's are ignored.
struct Judged {
    Vector<const Index> samples;        // indices into the batch
    Matrix<const double> bound;         // (B, m or more)
    Tensor<const double> varying;       // (B, k or more, d or more)
    Matrix<const bool> active;          // (B, clauses)
    Matrix<const bool> rule_active;     // (B, rules)
    Matrix<const double> y;             // (B, d)
    double tolerance;
    Matrix<std::int8_t> assignment;     // (B, booleans): gets 1 where a boolean's rows hold, 0 elsewhere
    Matrix<double> violation;           // (B, rules): gets that of each rule
    Vector<bool> holds;                 // (samples,): gets whether everything holds
};

struct Judge {
    Table<double> shared;              // coefficients that do not depend on x, (m, d)
    std::vector<double> largest;       // max(1, max|a|) of those, (m,)
    std::vector<Index> place;          // of a row among the varying ones, -1 for the others, (m,)
    Flags equality;                    // (m,)
    Lists boolean_rows;                // rows of each boolean
    std::vector<Index> nested_clause;  // clauses that a boolean guards, the innermost first
    std::vector<Index> nested_guard;   // that boolean
    Lists nested_booleans;             // booleans of each of those clauses
    Lists rule_booleans;               // booleans of each rule
    std::vector<Index> global_rows;
    std::vector<double> lower, upper;  // of the outputs, (d,)
    Flags integer;                     // (d,)

    void operator()(const Judged& judged) const;

private:
    void measure(const Judged& judged, Index s, std::vector<double>& residual, std::vector<double>& value) const;
    bool inside(Vector<const double> y, double tolerance) const;
};

}  // namespace gdpnet
