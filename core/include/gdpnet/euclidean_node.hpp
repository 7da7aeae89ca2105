// A node of the search for the point that is nearest in the weighted Euclidean norm:
//
//     minimise    1/2 sum_j (w_j (z_j - yhat_j))^2   over the enforced rows and bounds
//
// The quadratic program has no kinks and no price. Its columns are x_j = w_j (z_j - origin_j), so all curvatures of
// outputs are 1. The origin is the prediction; where that is so large that little would be left of the digits of z,
// it is 0, and the prediction is the centre.
//
// Auxiliaries, and outputs of weight 0, cost nothing. They are drawn to a centre by a small curvature, in units in
// which they do about as much to a row as an output does: else it would take many centres until none matters. A value
// with centres is no bound of the node (minimise y^2 / 2 for y >= 1000 - z, z free: that is 0, the first value with a
// centre is not); `Quadratic::bound_value` is one without them.
//
// An enforced row that is curved stands in the program as cuts. They are added at the program's optimum until the row
// holds there. The optimum of what is active then (rows, and instead of their cuts the curved rows themselves) is
// computed by Newton's method. If no multiplier there has a wrong sign, the tangents at that point take the place of
// the cuts: it is the optimum of the program with them, to the last digit, and so a bound.
#pragma once

#include "gdpnet/branching.hpp"
#include "gdpnet/cuts.hpp"
#include "gdpnet/polish.hpp"
#include "gdpnet/quadratic_node.hpp"
#include "gdpnet/sample.hpp"

namespace gdpnet {

class EuclideanNode : public QuadraticNode {
public:
    explicit EuclideanNode(Sample& sample);

    // Takes over what is in the sample and goes to the root. False on contradiction.
    bool begin(Vector<const double> yhat, Vector<const double> weights);

    // Adds a row to the program: as a bound if it has one entry. False on contradiction.
    bool enforce(Index code);

    void save(Index level);
    void restore(Index level);
    void keep_aside();
    void take_back();

    // Solves the node's program, until its centres do not matter; stops where the bound reaches the cutoff.
    Outcome solve(double cutoff);

    // Back to the state without active rows; what is enforced stays.
    void restart() { q.restart_in_box(); }

    // What the node costs at least.
    double bound() const { return q.bound_value(); }

    const std::vector<double>& point() const { return units.z; }

    // Writes z; `exactly`: computed afresh from what holds it.
    void read_point(bool exactly);

    // Half the squared distance at z.
    double value() const;

    // What enforcing these rows adds to the node's optimum at least, infinite if one cannot hold: the best of them.
    //
    // The optimum x is the projection of the prediction onto a convex set: any point y of it costs at least what x
    // does plus 1/2 |y - x|^2, and to satisfy the row it has to leave x by at least the distance of the row. Columns
    // that a bound keeps from helping are left out. Rows without a column in common add up.
    Gain look_ahead(Vector<const Index> rows, double enough) const;

    bool row_holds(Index i) const { return violation(i) <= sample_.row[i].tolerance; }
    static constexpr bool kRowsFirst = false;
    auto rows_hold() const {
        return [this](Index i) { return row_holds(i); };
    }

    // Whether the enforced rows hold at z.
    bool verify() const;

    // Whether whole-number columns are whole to the last digit.
    bool whole() const;

    // Fixes them at the nearest whole number.
    void fix_whole();

    // A whole-number column that is not fixed, -1 if there is none.
    Index unfixed() const;

private:
    Gain look_ahead_row(Index i) const;
    void choose_units();
    void choose_auxiliary_units();
    bool tighten(Index j, double bound, bool is_lower, bool negated);
    bool settled(double share) const;
    Outcome solve(double cutoff, double& curvature);
    Outcome minimise(double cutoff) { return rows.curves.none() ? q.minimise(cutoff) : minimise_curved(cutoff); }

    // What columns can do for a row that is violated, each as far as its bounds let it.
    struct Push {
        double over;           // what is left for columns with a cost
        double square = 0.0;   // of their coefficients
        double reach = 0.0;    // what all columns can do together
        std::uint64_t columns = 0;  // those with a cost

        Gain gain(double needed, double forgiven) const {
            if (!(over > forgiven)) return {};
            return {needed - reach > forgiven ? kInfinity : 0.5 * over * over / square, columns, columns};
        }
    };
    void add_push(Push& push, Index j, double a) const {
        if (a == 0.0) return;
        const double room = a > 0.0 ? q.x[j] - q.lower[j] : q.upper[j] - q.x[j];
        if (!(room > 0.0)) return;
        push.reach += std::abs(a) * room;
        if (q.costly[j]) {
            push.square += a * a;
            push.columns |= std::uint64_t(1) << (j & 63);
        } else {
            push.over -= std::abs(a) * room;
        }
    }

    // By how much row i is violated at z, looked at once.
    double violation(Index i) const {
        double& known = violation_[i];
        if (std::isnan(known))
            known = rows.curved(i) ? cuts_.curved.excess(sample_, rows.curves.place[i], units.z.data())
                                   : sample_.violation(i, units.z.data());
        return known;
    }

    // ---- curved rows, in euclidean_curved.cpp
    void enforce_curved(Index c);
    void enforce_cuts(Index c);
    void go_back(const Bends::Mark& kept);
    Outcome minimise_curved(double cutoff);
    double farthest() const;
    Index add_cut(Index c, const double* z);
    void note_active_cuts();
    bool contradicts();
    bool has_active_cuts() const;
    bool add_cuts(bool active);
    bool still_there() const;
    bool polish();
    void list_active();
    bool signs_are_right();
    bool install();
    void refine_curved();
    bool curved_rows_hold(double share) const;
    Gain look_ahead_curved(Index i) const;

    Sample& sample_;
    mutable Cuts cuts_;
    Polish polish_;
    Bends bent_;
    Bends::Mark bend_aside_;
    std::vector<Bends::Mark> bends_;   // by level
    std::vector<double> push_;  // (curved rows, n): what active cuts press
    std::vector<double> tangent_;   // (n,)
    std::vector<double> polished_;  // (n,): where Newton's method ended last
    std::vector<double> last_;      // (n,): the point of the round before
    double farthest_ = 0.0;
    Flags presses_;                 // by curved row: whether one of its cuts is active
    std::vector<std::pair<Index, double>> kept_rows_;  // codes and orientations of active rows that are no cuts
    bool auxiliaries_ = false;  // whether some column has no cost
    std::vector<double> yhat_, weight_;
    mutable std::vector<double> violation_;  // (m,): of z; NaN where nobody has asked
};

}  // namespace gdpnet
