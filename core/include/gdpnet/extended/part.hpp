// A part of a sample: the nearest point of every block, and the program of those that disagree.
//
// The optimum of a part is at least the least distance of any of its blocks, and that of one block is
// attained on one of its products: a small program over the part's columns, as in the exact engine.
// So the block that is farthest from the prediction is asked first. Where its nearest point lies in a
// product of every other block, it is the optimum, and a vertex of the whole lifted program: weights
// are 0 or 1, and the point is a vertex of its product. Otherwise the program of that block is
// written, and of the blocks whose products all miss the point the farthest is added, until none is
// left: new columns cost nothing and new rows are at most violated, so the dual simplex goes on from
// its last basis.
//
// Where products have prices, all this holds of what a block costs beyond the price of its cheapest product: the
// optimum is at least the sum of those and the most that any block costs beyond its own, and a block that has the
// point in a product of that price has nothing to add.
#pragma once

#include "gdpnet/extended/program.hpp"
#include "gdpnet/extended/simplex.hpp"

namespace gdpnet::extended {

// What became of a sample.
enum class Outcome : std::int8_t { solved = 0, contradictory = 1, failed = 2 };

struct Solved {
    Outcome outcome;
    double value;    // inf where there is no point, of what failed a lower bound
    Index columns;   // of the last program; 0 where none was needed
};

// Solves a part that is loaded; its point is `work.point`.
Solved solve_part(const Part& part, Workspace& work, Watch& watch);

// The nearest point of a product, in the dictionary.
Optimisation solve_product(const Part& part, Workspace& work, Index product, double cutoff, Watch& watch);

// Writes the weights of a part's products; `columns` are those of its program.
void write_weights(const Part& part, const Workspace& work, Index columns, Vector<double> weight);

// Writes the first product of each block that the point satisfies within a tolerance, -1 if none.
void write_satisfied(const Part& part, const Workspace& work, double tolerance, std::int32_t* product);

// Where the final basis of a part is kept.
struct KeptBasis {
    std::int8_t* state;    // what the products are in the final program
    std::int32_t* rank;    // places of the blocks in the final program, 0 for those it has not
    std::int32_t* column;  // columns that are not 0
    std::int32_t* row;     // as many tight rows of the program
    double* value;         // of those columns
};

// Keeps the final basis of a part. Returns the number of its columns.
Index keep_basis(const Part& part, Workspace& work, Index columns, const KeptBasis& kept, Watch& watch);

}  // namespace gdpnet::extended
