// The quadratic program at a node of a search: a dual active-set method.
//
//     minimise    price * sum |x_j| + 1/2 sum curvature_j (x_j - centre_j)^2
//     subject to  the enforced rows, lower <= x <= upper
//
// The absolute values stand for the kinked columns only. Of a least-norm search these are the outputs:
// for a price that is large enough the minimiser is the least-norm point among the points with the
// least l1 norm, exactly and not only in the limit: both are polyhedral. So nothing depends on a ball
// of a radius known up to rounding, which would turn a unique nearest point into a sliver of points.
// Without kinks the program is a Euclidean projection.
//
// A column is free or fixed (at its kink 0, or at a bound); a row is active or not. The point is the
// minimiser for the active rows and fixed columns as equations, and no multiplier has the wrong sign.
// That is so at the start, and is kept by every step: a violated constraint is brought in by raising
// its multiplier; what would get a wrong multiplier on the way is let go. Every point on the way is a
// lower bound, and a node may go on from its parent's state.
//
// Columns without a cost of their own (auxiliaries) have a small curvature around a centre, which keeps
// the program strictly convex. The caller moves the centre to the solution until that does not matter
// any more.
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "gdpnet/component.hpp"
#include "gdpnet/outcome.hpp"

namespace gdpnet {

// Row i is `coefficient x <= rhs` (or ==), its largest coefficient about 1. Code i < m means row i,
// m + i its closed negation.
class Quadratic {
public:
    enum class Column : std::uint8_t { free, kink, lower, upper };
    using Outcome = gdpnet::Outcome;

    // Marks of a code.
    static constexpr std::uint8_t kEnforced = 1, kActive = 2, kIgnored = 4;

    // `start`, `column` and `equality` of the rows are read, not copied.
    explicit Quadratic(const Rows& rows);
    Quadratic(const Quadratic&) = delete;
    Quadratic& operator=(const Quadratic&) = delete;

    const Index n, m;

    Index row_of(Index code) const { return code < m ? code : code - m; }

    // Adds a row, or its closed negation, to the program.
    void enforce(Index code);

    // Takes the rows enforced after the first `count` out again.
    void enforce_only(Index count);

    // Back to the state without active rows, every kinked column fixed; what is enforced stays.
    void restart();

    // Goes on from the current state to the optimum, or until the bound reaches the cutoff. At an
    // optimum the factor is that of its active rows.
    Outcome minimise(double cutoff);

    // Computes an optimum afresh from its equations, without the price, where that agrees. On the face
    // of the l1-nearest points the price is constant, so only the norm is left to minimise; its large
    // multipliers, and their rounding errors, do not enter.
    void refine();

    // Moves x, by the least norm, to where the active rows hold; the factor must be theirs.
    void correct();

    // Another curvature for all columns without cost. The point stays an optimum where centres hold nothing back; else
    // a restart must follow.
    void set_centre_curvature(double value);

    // How far a row is above its right side; negative or positive for an equality.
    double excess(Index code) const;

    // A lower bound of what is minimised over the enforced rows and the bounds, centres left out. With kinks: price
    // and norm of the kinked columns (what the centres of the others add is left to the caller).
    double bound_value() const;

    // What the Lagrangian is above `bound_value`: multipliers times what x leaves of the active rows. Rounding, unless
    // those are nearly dependent.
    double missed() const;

    // The largest rate by which a centre holds a column without cost back.
    double pull() const;

    // Back to the state without active rows, every column where its own cost is least within its bounds.
    void restart_in_box();

    // Takes the columns without cost as their new centres, or a point `beyond` times as far again, and computes the
    // optimum of the same active rows and fixed columns afresh. False where that has a multiplier of the wrong sign; a
    // restart must follow.
    bool recentre(double beyond);

    // Appends an active row. False if there is no room, which independent rows never need.
    bool activate(Index code, double orientation, double multiplier);

    // Lets all active rows go: others, of which a point is known to be the optimum, come in their place.
    void release();

    // The k-th active row, oriented, and its right side.
    Vector<const double> active_row(Index k) const { return {dense_.values.data() + k * dense_.width, std::size_t(n)}; }
    double active_right(Index k) const { return right_[k]; }

    // What a step changes, and backtracking restores; bounds are kept by those who set them.
    struct Saved {
        std::vector<double> x, side, centre;
        std::vector<Column> state;
        std::vector<Index> active;
        std::vector<double> orientation, multiplier, right, dense, schur;
        Index enforced = 0, factored = 0;
    };
    void save(Saved& saved) const;
    void restore(const Saved& saved);

    // ---- the program
    Vector<const Index> start;           // (m + 1,)
    Vector<const Index> column;          // (entries,)
    Vector<const std::uint8_t> equality; // (m,)
    std::vector<double> coefficient;     // (entries,)
    std::vector<double> rhs;             // (m,)
    std::vector<double> tolerance;       // (m,): a row is violated beyond it
    std::vector<double> forgiven;        // (m,): an excess that a row dependent on the active ones may have
    double contradiction = 0.0;          // where `minimise` found the rows infeasible: by what they surely are
    Flags kinked;                        // (n,)
    Flags costly;                        // (n,): what is no auxiliary; of the others only centres tell where they are
    std::vector<double> curvature;       // (n,); after a change comes a restart
    std::vector<double> centre;          // (n,)
    std::vector<double> lower, upper;    // (n,)
    double price = 1.0;
    double rounding = 0.0;               // of the terms of a row, relative: less is no violation

    // ---- the state
    std::vector<double> x;           // (n,)
    std::vector<Column> state;       // (n,); after a change from outside comes a restart
    std::vector<double> side;        // (n,): sign of a free column's price
    std::vector<Index> enforced;     // codes; the first `enforced_count`
    std::vector<std::uint8_t> mark;  // (2 m,)
    Index enforced_count = 0;
    std::vector<Index> active;         // (n + 1,): codes; the first `active_count`
    std::vector<double> orientation;   // (n + 1,): -1 for an equality brought in from below
    std::vector<double> multiplier;    // (n + 1,)
    Index active_count = 0;
    long effort = 0;  // about how many operations were spent

private:
    enum class Kind : std::uint8_t { nothing, row, kink, lower, upper };
    struct Violation {
        Kind kind = Kind::nothing;
        Index which = -1;  // code or column
        double size = 0.0;
    };
    struct Block {
        double length = std::numeric_limits<double>::infinity();
        Index who = -1;  // column, or n + active row
    };

    void set_state(Index j, Column to) {
        state[j] = to;
        inverse_[j] = to == Column::free ? 1.0 / curvature[j] : 0.0;
    }
    double product(const double* one, const double* other) const;
    double write_row(Index code, double sign, Vector<double> target) const;
    double write_normal(const Violation& violation);
    void deactivate(Index k);
    bool factor();
    void solve_factored();
    bool find_direction(double& fall);
    void slope_range(Index j, double& low, double& high) const;
    void find_slopes(double pending);
    Block blocking(double pending);
    void let_go(Index who);
    Violation most_violated() const;
    void fix_column(Kind kind, Index j);
    double active_excess(Index k) const;
    double reach_of_rest() const;
    Outcome bring_in(Violation violation);
    double size_of_terms(Index i) const;
    bool multipliers_have_right_signs();

    Flags passed_;                  // (n,): columns that are off a bound by rounding alone
    std::vector<double> inverse_;   // (n,): of the curvature of a free column, 0 of a fixed one
    Table<double> dense_;           // (n + 1, n): active rows, oriented
    std::vector<double> right_;     // (n + 1,): their right sides
    std::vector<double> normal_;    // (n,): of what is brought in
    // The Cholesky factor of the active rows' products over the free columns. A line depends on the
    // lines before it alone, so a row that joins the active ones costs one line.
    Table<double> schur_;           // (n + 1, n + 1)
    Index factored_ = 0;            // leading lines that are up to date
    std::vector<double> rate_;      // (n + 1,): of the multipliers
    std::vector<double> step_;      // (n,): of x
    std::vector<double> slope_;     // (n,): derivative of the smooth part, multipliers included
    std::vector<double> slope_rate_;// (n,): and its rate
    std::vector<double> room_;      // (2 n + 1,): what is left to a multiplier
    std::vector<double> speed_;     // (2 n + 1,): how fast it is used up, 0 if it does not block
    std::vector<double> kept_;      // (n,): scratch of `refine`
};

}  // namespace gdpnet
