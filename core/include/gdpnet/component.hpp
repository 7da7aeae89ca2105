// A part of the rules that can be projected by itself: what all its samples share.
#pragma once

#include <cstdint>
#include <vector>

#include "gdpnet/arrays.hpp"

namespace gdpnet {

using Flags = std::vector<std::uint8_t>;

// Rows as nonzero entries, scaled by powers of two to a largest coefficient in [1, 2).
struct Rows {
    Index outputs = 0;  // the first columns
    std::vector<double> lower, upper;  // (n,)
    Flags integer;                     // (n,)
    std::vector<Index> start;          // entries of each row, (m + 1,)
    std::vector<Index> column;         // (entries,)
    std::vector<double> coefficient;   // (entries,), scaled; those of varying rows differ by sample
    std::vector<double> largest;       // largest coefficient of each row before scaling, (m,)
    std::vector<double> scale;         // (m,)
    Flags equality;                    // (m,)
    std::vector<Index> varying;        // rows whose coefficients depend on x, (k,)
    std::vector<Index> place;          // of a row among the varying ones, -1 for others, (m,)
    std::vector<Index> global_rows;    // rows that always hold
    bool plain = false;                // whether a prediction can be accepted by looking at rows alone

    Index columns() const { return Index(lower.size()); }
    Index count() const { return Index(equality.size()); }
};

// Booleans and clauses, as compressed lists. A literal is k + 1 for boolean k, negative for "not k".
struct Logic {
    std::vector<Index> clause_start, clause_literal;   // literals of each clause
    std::vector<Index> clause_guard;                   // the boolean in whose disjunct a clause stands, or -1
    std::vector<Index> true_start, true_row;           // rows that a boolean's truth enforces
    std::vector<Index> false_start, false_row;         // rows that its falsehood enforces
    std::vector<Index> guarded_start, guarded_clause;  // clauses guarded by a boolean
    Flags tied;                                        // booleans that logic or sums speak of

    Index booleans() const { return Index(tied.size()); }
    Index clauses() const { return Index(clause_guard.size()); }
};

struct Component {
    Rows rows;
    Logic logic;
};

}  // namespace gdpnet
