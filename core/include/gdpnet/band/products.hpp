// The products of the DNF that the regularised quadratic program can give weight to: those of the
// sample at work, and those with weight of a batch.
//
// A product is a choice of a disjunct (or of several, where logic names them and XOR does not forbid
// it) for every active rule. Each leaves its nearest vertex and the rows and columns that hold it
// there: a *piece*, along which its copy z_k is proportional to its weight lambda_k, and the price of
// weight is a line.
#pragma once

#include <cstdint>
#include <vector>

#include "gdpnet/arrays.hpp"

namespace gdpnet::band {

// What holds a column of a piece. Free ones are determined by the rows and, where there are fewer
// rows, by the quadratic term; the name tells the sign of their price.
enum class Held : std::int8_t { free_above, free_below, at_kink, at_bound };

// How a sample was solved; Python reads these numbers.
enum class Status : std::int8_t { passed, vertices, pieces, failed };

constexpr std::int32_t kNoRow = -1;

// The products of one sample, with room for one more than are kept.
struct Products {
    Index count = 0;
    std::vector<double> intercept;  // price of weight at 0, on the line `intercept + slope * weight`
    std::vector<double> slope;
    std::vector<double> limit;      // weight up to which the vertex stays optimal
    std::vector<double> weight;     // lambda
    std::vector<double> paid;       // prices of what is chosen
    Table<double> point;            // y_k - yhat, then the auxiliaries, each for weight 1
    Table<Held> kind;               // what holds each column
    Table<std::int32_t> row;        // tight rows, kNoRow beyond their number
    Table<std::int8_t> state;       // booleans chosen

    Products() = default;
    Products(Index places, Index columns, Index booleans);

    Index places() const { return point.lines; }

    // Overwrites a product by another.
    void copy(Index to, Index from);
    bool same_point(Index p, Index q);

    // Keeps the product at place `count` unless its vertex is known, at no higher price. Where there is no room it
    // replaces the farthest one, if it is nearer.
    void keep_if_distinct(Index cap);
    // Drops all but one product of each vertex, and counts the one at place `count`.
    void make_distinct(Index cap);

    // Weights that sum to 1 and have the same price, each on its line.
    void fill();
};

// The products with weight of a batch, those of sample s from `start[s]` on.
struct Band {
    Index columns = 0;
    std::vector<Index> start;  // (B + 1,)
    std::vector<double> slope, weight;
    std::vector<double> point;       // lines of `columns`, as in Products
    std::vector<Held> kind;
    std::vector<std::int32_t> row;
    Index priced = 0;                // booleans with a price
    std::vector<std::int8_t> pays;   // lines of `priced`: whether a product chooses it

    void append(Products& products, Index p, const std::vector<Index>& priced_booleans);
    void append(const Band& other);
};

}  // namespace gdpnet::band
