// A batch from inputs to nearest points in one call, and what was found, in memory of its own.
//
// For a single prediction the search takes about a microsecond, and an array that Python makes a fifth of one. So what
// most callers never look at stays here until somebody does.
#pragma once

#include <memory>

#include "gdpnet/euclidean_search.hpp"
#include "gdpnet/exact.hpp"
#include "gdpnet/tape.hpp"
#include "gdpnet/vertex.hpp"

namespace gdpnet {

// Memory that is written before it is read.
template <class T>
struct Room {
    std::unique_ptr<T[]> values;
    Index lines = 0, width = 0;

    Room() = default;
    Room(Index lines, Index width)
        : values(std::make_unique_for_overwrite<T[]>(std::size_t(lines * width))), lines(lines), width(width) {}

    operator Matrix<T>() const { return {values.get(), lines, width}; }
    operator Vector<T>() const { return {values.get(), std::size_t(lines * width)}; }
};

struct Found {
    // Room for a batch of a component that is all of the rules on the tape.
    Found(const Tape& tape, const Component& component, Index size, bool detailed);

    // ---- the rules at x
    Room<bool> active;      // (B, clauses)
    Room<double> right;     // (B, m): right sides
    Room<double> varying;   // (B, k n): coefficients that depend on x
    Room<double> price;     // (B, p)
    // ---- see Answers
    Room<double> distance, bound;
    Room<std::int8_t> status;
    Room<Truth> assignment;
    Room<Index> nodes;
    // ---- see Dictionaries; without lines where they were not asked for, as in l2, which has none
    Room<std::int8_t> column_state;
    Room<Index> column_source, tight_rows;
    Room<double> multipliers, reduced_costs;

    Index columns = 0;      // n
    bool detailed = false;
    bool proved = false;    // all samples have a point that is proved nearest

    Tensor<double> coefficients() const;
    Answers answers(Matrix<double> z) const;
    Dictionaries dictionaries() const;
};

// Evaluates the rules and projects, in l1 or l2. False, without a search, where a number of the rules is not finite, or a
// price negative.
template <class AnySearch>
bool find(const Tape& tape, AnySearch& search, Matrix<const double> x, Matrix<const double> yhat,
          Vector<const double> weights, double price_unit, const Limits& limits, Threads threads, Call& call,
          Matrix<double> z, Found& found);

}  // namespace gdpnet
