// Conditions and coefficients of a batch, evaluated for each sample.
//
// A single prediction is projected in microseconds; evaluating the inputs' expressions operation by operation in
// torch would cost a hundred times that. The expressions are therefore compiled to a tape of elementary operations.
#pragma once

#include <vector>

#include "gdpnet/arrays.hpp"

namespace gdpnet {

enum class Operation : std::uint8_t {
    input, number, sum, product, divide, max, min, abs, choose, less_equal, less, equal, and_, or_, not_,
};

// Their names in expressions, by code.
constexpr const char* kOperations[] = {
    "input", "number", "sum", "product", "divide", "max", "min", "abs", "if", "<=", "<", "==", "and", "or", "not",
};

// Operation r writes register r.
struct Line {
    Operation operation;
    std::int32_t first, second, third;  // registers; the column of x for an input
    double constant;                    // for numbers
};

// `value[to] += multiplier * register`.
struct Term {
    Index to;  // flat index of the entry
    Index from;
    double multiplier;
};

// All that is needed to instantiate rules for a sample.
struct Tape {
    Index inputs = 0;                                // columns of x
    std::vector<Line> lines;
    std::vector<double> bound;                       // constant part of the right sides, (m,)
    std::vector<Term> bound_terms;                   // what the inputs add to them
    Table<double> varying;                           // constant part of the coefficients that depend on x, (k, n)
    std::vector<Term> varying_terms;                 // what the inputs add to them
    std::vector<Index> clause_start, clause_register;  // conditions of each clause
    std::vector<double> price;                       // constant part of the prices, (p,)
    std::vector<Term> price_terms;                   // what the inputs add to them

    Index clauses() const { return Index(clause_start.size()) - 1; }

    // Writes which clauses apply (B, clauses), right sides (B, m), coefficients (B, k, n) and prices (B, p); false where
    // one of them is not a finite number, or a price is negative.
    bool instantiate(Matrix<const double> x, Matrix<bool> active, Matrix<double> bound, Tensor<double> varying,
                     Matrix<double> prices) const;
};

}  // namespace gdpnet
