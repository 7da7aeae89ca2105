// The dictionary: the state of a linear program, over the columns only.
//
// The program is
//
//     minimise  sum_j w_j |z_j - kink_j|   subject to   lower <= z <= upper  and the enforced rows.
//
// Neither the kinks nor the box become rows. A column that is not basic rests on one of its
// breakpoints (lower bound, kink, upper bound); a row takes part in the dictionary only while it is
// tight. So the dictionary has one line per *basic column*, as many as there are tight rows, and one
// position per nonbasic quantity, of which there are always n:
//
//     z[basic k] = value + sum_p tableau[k, p] * (move of the nonbasic quantity at position p)
//
// The nonbasic quantities are columns and slacks of tight rows.
//
// Dual feasibility: `reduced[p]` is the rate of the basic columns' cost as the quantity at p moves
// up, its own cost left out. Resting on a breakpoint with one-sided slopes s- <= s+ it must satisfy
// -s+ <= reduced <= -s-. The start (no tight row, everything on its breakpoint nearest to the kink)
// is dual feasible, and every step keeps that, so `dual_objective` is always a lower bound.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "gdpnet/arrays.hpp"
#include "gdpnet/component.hpp"

namespace gdpnet::extended {

// Columns, rows and ids fit into half a word, which halves what the loops over them read.
using Small = std::int32_t;

// Ids of nonbasic quantities: columns as they are, slacks of rows from here on.
constexpr Small kFirstRow = Small(1) << 30;
inline bool is_row(Small id) { return id >= kFirstRow; }
inline Small row_of(Small id) { return id - kFirstRow; }
inline Small id_of_row(Index row) { return kFirstRow + Small(row); }

// Where a bound comes from, when not from a row.
constexpr Small kFromBox = -1;

// Memory that is not touched before it is needed: programs are mostly smaller than the largest.
template <class T>
struct Buffer {
    std::unique_ptr<T[]> values;

    Buffer() = default;
    explicit Buffer(Index size) : values(new T[std::size_t(size)]) {}
    T* data() const { return values.get(); }
    T& operator[](Index i) const { return values[std::size_t(i)]; }
};

// Rows of one sample by nonzero entries, scaled to a largest coefficient of about 1.
struct SparseRows {
    Buffer<Small> start;         // (m + 1,)
    Buffer<Small> column;        // (entries,)
    Buffer<double> coefficient;  // (entries,)
    Buffer<double> rhs;          // (m,)
    Buffer<double> tolerance;    // (m,)
    Buffer<std::uint8_t> equality;

    SparseRows(Index rows, Index entries);

    // a z - b of a row.
    double excess(Index i, const double* z) const {
        double total = 0.0;
        for (Small e = start[i]; e < start[i + 1]; ++e) total += coefficient[e] * z[column[e]];
        return total - rhs[i];  // last, or it is lost beside large terms
    }
    bool holds(Index i, const double* z) const;
};

struct Dictionary {
    Index n = 0;       // columns
    Index outputs = 0; // columns that may have a kink and a weight: the first
    Index basics = 0;  // lines of the tableau
    Index age = 0;     // pivots since the last refactorisation

    // By column. Auxiliaries have their kink at -inf, with weight 0.
    Buffer<double> lower, upper, value, kink, weight;
    Buffer<double> farthest;  // beyond which no optimum goes, whatever its upper bound
    Buffer<double> slope;  // of the cost piece on which a basic column is
    Buffer<Small> place;   // k >= 0: basic on line k; otherwise -1 - position
    Buffer<Small> lower_source, upper_source;
    // By position.
    Buffer<Small> nonbasic;
    Buffer<double> reduced;
    Buffer<std::uint8_t> rises, falls;  // whether the quantity may move up, and down
    // By line.
    Buffer<Small> basic;
    Buffer<double> tableau;  // (basics, n)
    // Rows.
    std::vector<Small> enforced;      // rows with two entries or more
    std::vector<std::uint8_t> tight;  // by row
    // Scratch: how the leaving quantity changes with the one at each position; of refactorisation.
    Buffer<double> alpha;
    Buffer<double> factor;

    Dictionary(Index columns, Index rows);

    double* line(Index k) const { return tableau.data() + k * n; }

    // Puts every column on the breakpoint nearest to its kink; no row is enforced. The first
    // `with_kinks` columns have kinks and weights.
    void start(Index columns, const double* lower, const double* upper, Index with_kinks, const double* kinks,
               const double* weights);

    // Back to no tight rows, within the bounds there are.
    void reset_basis();

    // Makes room for more columns, which rest at 0 and cost nothing; how far they go is to be noted.
    void widen(Index columns);

    // Lets a column that rests at 0, its lower bound, cost something; columns before it may have no other.
    void charge(Index column, double cost);

    // Adds a row to the program: as a bound if it has one entry. False on contradiction.
    bool enforce(const SparseRows& rows, Index row);

    // Moves a nonbasic column; the basic columns follow.
    void move_nonbasic(Index position, Index j, double target);

    // The lower bound: basic columns are priced on their current piece, even beyond its ends.
    double dual_objective() const;

    // The weighted distance of the current point.
    double distance() const;

    // What no optimum is above.
    double most(Index j) const { return upper[j] < farthest[j] ? upper[j] : farthest[j]; }

    // Notes which ways the column at a position may move.
    void note_ways(Index position, Index j) {
        rises[position] = value[j] < upper[j];
        falls[position] = value[j] > lower[j];
    }

private:
    void rest(Index j, double at);
    bool tighten(Index j, double bound, bool is_lower, Index source);
};

}  // namespace gdpnet::extended
