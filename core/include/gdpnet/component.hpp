// A part of the rules that can be projected by itself: what all its samples share.
#pragma once

#include <cmath>
#include <cstdint>
#include <vector>

#include "gdpnet/arrays.hpp"

namespace gdpnet {

using Flags = std::vector<std::uint8_t>;

// A convex function of one argument t, or of several.
enum class Shape : std::uint8_t {
    squares,  // the sum of t^2
    norm,     // its root
    exp,      // exp(t)
    log,      // -log(t), for t > 0
    power,    // t^p: p >= 1 and t >= 0 (even whole p: any t), p < 0 and t > 0; -t^p for 0 < p < 1 and t >= 0
};

// What stands beside the terms of some rows: `a z + sum weight shape(arguments) <= b`. Arguments are rows, whose
// `a z - b` they are, and which nothing enforces. A curved row is not scaled.
struct Curves {
    struct Curve {
        Shape shape;
        double weight, exponent;
        Index first, last;  // in `argument`
    };
    std::vector<Index> row;       // the curved rows
    std::vector<Index> start;     // curves of each of them, (curved rows + 1,)
    std::vector<Curve> curve;
    std::vector<Index> argument;  // rows
    std::vector<Index> place;     // of a row among the curved ones, -1 for others, (m,); empty where none is curved
    // Gradient cuts of a curved row, written as a search goes: rows behind all others, with entries for every column
    // of the row and its arguments.
    std::vector<Index> first_cut;  // (curved rows + 1,)

    Index count() const { return Index(row.size()); }
    bool none() const { return row.empty(); }
};

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
    Curves curves;

    Index columns() const { return Index(lower.size()); }
    Index count() const { return Index(equality.size()); }

    // Rows that have a right side of their own; the others are cuts.
    Index given() const { return curves.none() ? count() : curves.first_cut.front(); }
    bool curved(Index i) const { return !curves.none() && curves.place[i] >= 0; }

    // Makes room for the cuts of its curved rows. To be called once, when all else is there.
    void add_cuts();
};

// Booleans and clauses, as compressed lists. A literal is k + 1 for boolean k, negative for "not k".
struct Logic {
    std::vector<Index> clause_start, clause_literal;   // literals of each clause
    std::vector<Index> clause_guard;                   // the boolean in whose disjunct a clause stands, or -1
    std::vector<Index> true_start, true_row;           // rows that a boolean's truth enforces
    std::vector<Index> false_start, false_row;         // rows that its falsehood enforces
    std::vector<Index> guarded_start, guarded_clause;  // clauses guarded by a boolean
    Flags tied;                                        // booleans that logic or sums speak of
    std::vector<Index> priced;                         // booleans that cost something where they are chosen,
    std::vector<Index> priced_entry;                   // ... and their places in `clause_literal`, in their rule

    Index booleans() const { return Index(tied.size()); }
    Index clauses() const { return Index(clause_guard.size()); }
};

struct Component {
    Rows rows;
    Logic logic;
};

// The power of two that brings the largest coefficient of a row into [1, 2); 1 for a row without any.
inline double scale_of(double largest) { return largest > 0.0 ? std::ldexp(1.0, -std::ilogb(largest)) : 1.0; }

// Marks the rows that chosen disjuncts and globals ask for, (m,).
void mark_enforced(const Rows& rows, const Logic& logic, Vector<const std::int8_t> assignment, Flags& marks);

}  // namespace gdpnet
