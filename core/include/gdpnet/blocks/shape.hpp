// What the kernels of the interior-point method read and write.
//
// Plain pointers, and no functions: the kernels are compiled for several CPUs (see kernels.hpp), and
// a function of a shared header that is compiled for the widest of them could become everybody's.
#pragma once

#include <cstdint>

#include "gdpnet/arrays.hpp"

namespace gdpnet::blocks {

// What all samples of a part share. The table of a sample has the rows of the rules that stand in the
// part, then two rows for each column's upper and lower bound, then the ranges of the outputs' eta.
struct Shape {
    Index outputs = 0;      // d
    Index auxiliaries = 0;  // the other columns
    Index width = 0;        // D: numbers of a copy
    Index rules = 0;        // m: rows of the rules
    Index lines = 0;        // rows of the table
    Index blocks = 0;
    Index copies = 0;
    Index places = 0;               // rows of all copies
    const Index* columns;           // of the rules, outputs first, (n,)
    const double* lower;            // of the columns, (n,)
    const double* upper;            // of the columns, (n,)
    const Index* source;            // rows of the rules, (m,)
    const Index* varying;           // their place among those whose coefficients depend on x, or -1, (m,)
    const double* shared;           // their coefficients where these do not, (m, n)
    const Index* first_copy;        // of each block, (blocks + 1,)
    const Index* first_place;       // of each copy, (copies + 1,)
    const Index* row;               // of the table, (places,)
    const std::uint8_t* equality;   // of the table, (lines,)
    const Index* start;             // entries of each row of the table, (lines + 1,)
    const Index* entry;             // which of (p, q, lambda, a) they are, in order; the others are 0
};

// The samples of a call. Arrays of the whole batch; the part is that of some `samples`.
struct Batch {
    const Index* samples;    // (size,)
    const double* bound;     // (B, bounds)
    const double* varying;   // (B, lines, columns)
    const double* yhat;      // (B, outputs)
    const double* weights;   // (outputs,)
    Index size = 0;
    Index bounds = 0;
    Index varying_lines = 0;
    Index columns = 0;
    Index outputs = 0;
    double eps = 0.0;
    const double* price = nullptr;  // of the products, as copies are in order, (size, copies); none: nothing costs anything
    // Where samples left the central path, (size, 2 copies D + 2 places): the copies x, multipliers of
    // their signs, slacks of the rows of the copies, and their multipliers.
    double* path;
};

// Solutions: `y` of those that were solved, `solved` false for the others.
struct Points {
    double* y;     // (B, outputs)
    bool* solved;  // (B,)
};

// Gradients: `yhat` begins as `y`, the others as 0.
struct Adjoints {
    const double* y;  // of the loss, (B, outputs)
    double* yhat;     // (B, outputs)
    double* bound;    // (B, bounds)
    double* varying;  // (B, lines, columns)
    double* price = nullptr;  // (size, copies), written where there are prices
};

// Asks whether the user wants to stop; asked once in a round of steps.
struct Stop {
    void* context;
    bool (*asked)(void* context);
};

}  // namespace gdpnet::blocks
