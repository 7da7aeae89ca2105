// The lifted hull of a part as sparse rows, written for one sample.
//
// The copy of a product is u = p - q with p, q >= 0, and p + q is its share of the epigraph, so that
// all blocks agree on the point and on the distance exactly if the sums of p and of q over the
// products of a block are the same P and Q for every block. One product of each block, the reference,
// is what the others leave of P, Q and of the weight 1: its columns and all equations vanish.
//
//     minimise  w (P + Q) + sum_k (price_k - price of the reference) weight_k
//     columns   P, Q, auxiliaries;  p, q, auxiliaries, weight  of every product but the references
//     rows      a_i u_k <= weight_k slack_i,  bounds of u_k,  and of the references also the signs
//
// Auxiliaries are measured from their lower bounds, so they need no q. Without any row the point
// is the prediction, with the references' weights 1; that is dual feasible, since the reference is the
// cheapest product of its block. Prices are counted from there.
#pragma once

#include "gdpnet/extended/simplex.hpp"
#include "gdpnet/extended/tables.hpp"

namespace gdpnet::extended {

// What a product is in the program.
enum class State : std::int8_t { absent, present, reference };

// Where a row of the program comes from: a row of the part, or
inline Small bound_source(Index n, Index j, bool upper) { return Small(upper ? -1 - j : -1 - n - j); }
inline Small sign_source(Index n) { return Small(-1 - 2 * n); }

// The inputs of one sample.
struct Sample {
    Vector<const double> start;    // prediction within the bounds, (d,)
    Vector<const double> weights;  // (d,)
    Vector<const double> bound;    // right sides, (m,)
    Matrix<const double> varying;  // coefficients that depend on x, (k, n)
    Vector<const double> price;    // of the layout's products, or none where all are 0
};

// Memory of one thread; nothing is allocated for a sample.
struct Workspace {
    // The part, measured from the prediction, or from the lower bound of an auxiliary: `shift`.
    SparseRows local;
    std::vector<double> scale;               // of the part's rows
    std::vector<double> size;                // max(1, |b|, max |a|) of them, scaled: what a tolerance is relative to
    std::vector<Small> place;                // a column of the rules in the part
    std::vector<double> low, high, shift;    // by column
    std::vector<double> weights;             // of P and Q
    std::vector<double> point;               // what was found
    std::vector<double> zero;
    std::vector<std::uint8_t> implied;       // bounds of a column that the product's rows make redundant (bits)
    // The program.
    SparseRows lifted;
    Buffer<Small> owner;                     // product of each row
    Buffer<Small> source;                    // of each row
    // Products of the layout.
    std::vector<Small> first;                // first column of a product's copy
    std::vector<State> state;
    std::vector<double> price;               // 0 where a sample has none
    // Blocks of the part.
    std::vector<Small> nearest;              // the nearest product, or the one that holds the point
    std::vector<Small> rank;                 // place in the program: from 1 on, 0 if it is left out
    std::vector<double> least;               // price of its cheapest product
    std::vector<double> distance;            // of its nearest point, with what its product costs beyond that
    Table<double> points;                    // its nearest point
    Simplex simplex;
    Dictionary& dictionary = simplex.dictionary;

    Workspace(const Sources& sources, const Extent& extent);
};

// Writes a sample's rows of a part, scaled and measured from the prediction.
void load_part(const Sources& sources, const Part& part, const Sample& sample, Workspace& work);

struct Counts {
    Index columns, rows;
};

// Adds a block, its products that are not absent, to a program. Returns how large it is then.
Counts write_block(const Part& part, Workspace& work, Index block, Counts before);

// Writes the program of the blocks that have a rank.
Counts write_program(const Part& part, Workspace& work);

}  // namespace gdpnet::extended
