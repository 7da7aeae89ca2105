// The linear program at a node, over the columns only.
//
//     minimise  sum_j w_j |z_j - kink_j|   subject to   lower <= z <= upper  and the enforced rows.
//
// Neither the kinks nor the box become rows. A column that is not basic rests on one of its breakpoints
// (lower bound, kink, upper bound); a row takes part only while it is tight. So the dictionary has one line
// for each *basic column* (as many as there are tight rows) and one position for each nonbasic quantity, of
// which there are always n:
//
//     z[basic k] = value + sum_p tableau[k, p] * (move of the nonbasic quantity at position p)
//
// The nonbasic quantities are columns (id < n) and slacks of tight rows (id = n + code). A row has two codes:
// code i < m stands for `a z <= b` (or `a z == b`), code m + i for its closed negation `a z >= b`, which the
// search enforces once it has explored the row itself.
//
// Dual feasibility: reduced[p] is the rate of the basic columns' cost as the quantity at p moves up, its own
// cost left out. Resting on a breakpoint with one-sided slopes s- <= s+ it must satisfy -s+ <= reduced <= -s-.
// The start (no tight row, everything on its breakpoint nearest to the kink) is dual feasible, and every step
// keeps that, so `dual_objective` is always a lower bound.
//
// An enforced row that is curved stands in the program as cuts, added at its optimum until the row holds there. Then, or
// as soon as it works, Newton's method computes the optimum of what is active: a point between the vertices of the
// program, which stays as it is, and a bound by its multipliers.
#pragma once

#include <cstdint>
#include <vector>

#include "gdpnet/branching.hpp"
#include "gdpnet/cuts.hpp"
#include "gdpnet/outcome.hpp"
#include "gdpnet/polish.hpp"
#include "gdpnet/sample.hpp"

namespace gdpnet {

// Where a bound comes from, when not from a row code.
constexpr Slot kFromBox = -1, kFromSplit = -2;

enum class Side { lower, upper };

// What a step changes, and backtracking restores: one block of numbers and one of slots.
struct LinearState {
    explicit LinearState(Index n);
    LinearState(const LinearState&) = delete;
    LinearState& operator=(const LinearState&) = delete;
    LinearState(LinearState&&) = default;

    void copy(const LinearState& other);

    Vector<double> lower, upper, value;         // by column
    Vector<double> reduced;                     // by position
    Vector<double> slope;                       // by column: of the cost piece a basic one is on, else 0
    Vector<Slot> nonbasic;                      // by position
    Vector<Slot> basic;                         // by line
    Vector<Slot> place;                         // by column: line k >= 0 if basic, else -1 - position
    Vector<Slot> lower_source, upper_source;    // by column: a row code, kFromBox or kFromSplit
    Index basics = 0;                           // basic columns, which is lines in use
    Index listed = 0;                           // enforced rows with two entries or more

private:
    std::vector<double> numbers_;
    std::vector<Slot> slots_;
};

class Linear : public LinearState {
public:
    explicit Linear(Sample& sample);

    const Index n, m;
    Sample& sample;
    std::vector<double> kink, weight;  // by column, constant for a sample; auxiliaries: kink -inf, weight 0
    std::vector<double> tilt;          // by column: a linear cost beside the distance; empty where there is none
    Table<double> tableau;             // the first `basics` lines are in use
    Index age = 0;                     // pivots since the tableau was built
    Index pivots = 0;                  // in all

    // Puts every column on the breakpoint nearest to its kink; no row is enforced. Where `tilted` is a cost for each
    // column, on that where its cost is least, which has to be finite; distances include it then.
    void start(Vector<const double> lower, Vector<const double> upper, Vector<const double> yhat,
               Vector<const double> weights, Vector<const double> tilted = {});

    // Adds a row to the program: as a bound if it has one entry. False on contradiction.
    bool enforce(Index code);

    // Raises the lower bound of column j, or drops the upper one. False if the box empties.
    bool tighten(Index j, double bound, Side side, Slot source);

    // The side of a split at a fractional value. False if it is empty.
    bool split(Index j, double value, bool up) {
        return up ? tighten(j, std::ceil(value), Side::lower, kFromSplit)
                  : tighten(j, std::floor(value), Side::upper, kFromSplit);
    }

    // Solves the program, from scratch if the warm start runs into trouble; stops where the bound reaches `cutoff`.
    Outcome solve(double cutoff) { return curved ? solve_curved(cutoff) : solve_linear(cutoff); }

    // Rebuilds tableau, values and reduced costs from the tight rows alone. False if they are singular.
    bool refactor();

    // Back to a dictionary without tight rows, within the node's bounds.
    void reset();

    // Keeps the state of the node on `level` of the stack, and goes back to it.
    void save(Index level);
    void restore(Index level);

    // The lower bound: basic columns are priced on their current piece, even beyond its ends.
    double dual_objective() const;

    // The weighted distance of the current point.
    double distance() const;

    // Whether bounds and enforced rows hold at a freshly computed point; whole columns are rounded first.
    bool verify();

    // Rise of the dual objective by one dual step on row i, violated by `excess`; infinite: it cannot hold. Before the
    // first look at a node `begin_look_ahead` is called.
    void begin_look_ahead() { charged_ = false; }
    Gain look_ahead(Index i, double excess);

    // The point of a solved node: that of the program, or near it where rows are curved.
    const double* point() const { return curved ? point_.data() : value.data(); }
    bool holds(Index i) const {
        return sample.rows.curved(i) ? curved_excess(i) <= sample.row[i].tolerance : sample.holds(i, point());
    }

    // ---- curved rows, in linear_curved.cpp
    const bool curved;  // whether there are any

    // How far curved row i is above 0 at the point.
    double curved_excess(Index i) const { return CurvedRows::excess(sample, sample.rows.curves.place[i], point_.data()); }

    // As `look_ahead`, of a cut of curved row i, which is kept.
    Gain look_ahead_curved(Index i);

    // As `verify`, `distance` at the point; whole columns are whole.
    bool verify_curved() const;
    double distance_of_point() const;

    // About how many arithmetic operations were spent since this was last asked.
    long take_effort() {
        const long spent = effort_;
        effort_ = 0;
        return spent;
    }

private:
    static constexpr std::uint8_t kListed = 1, kTight = 2;  // bits of a row's flag

    enum class Step { enter, none, change_piece };
    struct Leaving {
        Index id;         // -1: nothing is violated
        double move;      // it needs
        double target;    // it moves to, if a column
        double step_cap;  // of the dual step
    };
    struct Ratio {
        Step step;
        Index position;
        double violation;  // what remains
        double gain;       // of the dual objective
    };
    // What a nonbasic quantity charges for moving one way.
    struct Charge {
        double price;    // cost per unit move; infinite if it cannot move
        double room;     // way to the breakpoint where the cost changes
        double further;  // way from there to the next one
    };
    // A nonbasic quantity that can close a violation.
    struct Candidate {
        Charge charge;
        double size;  // gain per unit move, 0 once it has moved all its way
        Slot position;
        Slot passed;  // breakpoints
    };
    struct Level {
        explicit Level(Index n) : state(n) {}
        LinearState state;
        std::vector<double> tableau;
    };

    Outcome dual_simplex(double cutoff);
    Outcome solve_linear(double cutoff);

    bool enforce_curved(Index c);
    void enforce_cuts(Index c);
    void go_back(const Bends::Mark& kept);
    Outcome solve_curved(double cutoff);
    bool curved_rows_hold(double share) const;
    void note_tight_cuts();
    bool add_cuts(bool tight);
    Index add_cut(Index c, const double* z);
    bool polish();
    void list_active();
    bool pin_crossing();
    bool is_optimal();
    bool rows_hold(const double* z) const;
    void write_active(Index code);

    // ... and in linear_touch.cpp
    enum class Touch {
        unknown,
        nowhere,  // the rows contradict each other
        point,    // all their points are within `reach_` of that of `polish_`
    };
    Touch touch();
    void list_touching();
    double bound_multiplier(Index j);
    bool drop_pulling();
    double size_of_touching() const;
    double unevenness();
    bool find_reach();
    bool invert_spread(double radius);
    Outcome solve_at_touch(double cutoff);

    Leaving choose_leaving(bool bland) const;
    void slack_line(Index code);
    void refine_values();
    Charge charge(Index position, bool up) const;
    void list_candidates(double direction);
    void list_charges();
    Ratio ratio_test(double violation, double forgiven, double step_cap, bool lowest_id);
    void move_passed(double direction);
    void move_nonbasic(Index position, Index j, double target);
    void lean();
    double tilted_by(const double* z) const;
    void pivot(Index line, Index leaving, Index q, double leaving_move, bool up);
    Gain single_entry_gain(Index i) const;
    double column_tolerance(Index j, double x) const {
        if (sample.rows.integer[j]) return kFeasibility + kRounding * std::abs(x);
        return kFeasibility * std::max(1.0, std::abs(x));
    }
    Index row_of(Index code) const { return code < m ? code : code - m; }

    std::vector<Slot> enforced_;      // (2 m,): codes of the enforced rows with two entries or more
    std::vector<std::uint8_t> flag_;  // (2 m,), by code
    std::vector<Level> levels_;       // made when first reached
    Index with_tableau_;              // levels that keep their tableau
    long effort_ = 0;

    // Scratch of the ratio test.
    std::vector<double> alpha_;          // by position: derivative of the leaving quantity
    std::vector<Candidate> candidates_;  // ascending by position
    Index candidate_count_ = 0;
    std::vector<Charge> charges_;  // of looking ahead, by position: down, up
    bool charged_ = false;         // whether they are those of this node
    Table<double> factor_;  // scratch of `refactor`, (n, 2 n + 1)

    Cuts cuts_;
    Polish polish_;
    Bends bent_;
    std::vector<Bends::Mark> bends_;     // by level
    std::vector<double> point_, last_;   // (n,); none where no row is curved
    std::vector<double> push_, tangent_; // what tight cuts press, (curved rows, n); a gradient, (n,)
    Flags presses_;                      // by curved row: whether one of its cuts is tight
    std::vector<Slot> pinned_;           // (n,): 1 where Newton's method holds a basic column
    std::vector<Slot> active_codes_;     // codes of the rows it has
    std::vector<Index> touching_, every_;  // curved rows that may touch, by place; (n,): 0, 1, ...
    std::vector<double> reach_;          // (n,)
    Table<double> spread_;               // (n, n)
};

}  // namespace gdpnet
