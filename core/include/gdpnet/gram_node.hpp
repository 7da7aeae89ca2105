// A node of the Euclidean search where every column is an output that costs something and may be any number: the dual
// active-set method in terms of products of rows alone.
//
// In the columns x of gram.hpp the program is
//
//     minimise    1/2 |x|^2    subject to the enforced rows and bounds,
//
// so x = - sum v_k a_k over the active sides, and how far any row is above its right side is `excess at the prediction
// - sum v_k (a_k a_i)`: a handful of operations, however many columns there are. Of a node its active sides are kept,
// their multipliers v, the inverse of their products, and the excess of every row, which each step changes. The point
// itself is computed for bounds that it might break, and for leaves.
//
// What is delicate, such as rows that nearly depend on each other, ends in `Outcome::trouble`: EuclideanNode, which
// works on columns, is asked then.
#pragma once

#include <utility>

#include "gdpnet/branching.hpp"
#include "gdpnet/gram.hpp"
#include "gdpnet/outcome.hpp"

namespace gdpnet {

class GramNode {
public:
    explicit GramNode(Sample& sample);

    // Whether it is made for such rows, and for such a prediction.
    static bool suits(const Rows& rows);
    static bool suits(Vector<const double> yhat, Vector<const double> weights);

    // Takes over what is in the sample and goes to the root. False on contradiction.
    bool begin(Vector<const double> yhat, Vector<const double> weights);

    // Adds a row to the program. False on contradiction.
    bool enforce(Index code);
    bool split(Index, double, bool) { return false; }  // no column must be whole
    Index fractional() const { return -1; }

    void save(Index level);
    void restore(Index level);
    long take_effort() { return std::exchange(effort_, 0); }

    // Solves the node's program; stops where the bound reaches the cutoff.
    Outcome solve(double cutoff);

    // Back to the state without active sides; what is enforced stays.
    void restart();

    // Half the squared distance of the node's optimum, or what it is at least.
    double bound() const { return bound_; }

    // How far rows are violated at the optimum; `exactly`: z, computed afresh from what holds it.
    void read_point(bool exactly);
    const std::vector<double>& point() const { return z_; }

    // Half the squared distance at z.
    double value() const;

    // What enforcing these rows adds to the node's optimum at least: by their distance or, where that does not reach
    // `enough`, by the first step of the dual method. Their columns, and those of what the step moves, are pressed.
    Gain look_ahead(Vector<const Index> rows, double enough) const;

    // Which rows hold at the optimum, as a function of a row.
    static constexpr bool kRowsFirst = true;
    auto rows_hold() const {
        return [over = violation_, most = holds_.data()](Index i) { return over[i] <= most[i]; };
    }

    // Whether the enforced rows hold at z.
    bool verify() const;

private:
    static constexpr std::uint8_t kEnforced = 1, kIgnored = 2;  // marks of a code

    // A side as the method brings it in.
    struct Entering {
        Index side = -1;
        double sign = 1.0;    // -1: from below
        double excess = 0.0;
        double still = 0.0;   // at x = 0
        Index code = -1;      // of a row
        bool free = false;    // whether its multiplier may have any sign
    };
    struct Enforced {
        Index code, row;
        double sign;  // -1 for a negation, 0 for an equality
    };
    // Active sides, the first `count`; what lies behind takes part where sums run in fours.
    struct Active {
        Index count = 0;
        Index side[kGramColumns] = {};
        double sign[kGramColumns] = {};        // of its multiplier, 0 where that is free
        double still[kGramColumns] = {};
        double multiplier[kGramColumns] = {};
        const double *line[kGramColumns] = {}, *normal[kGramColumns] = {};
    };
    struct Level {
        Active active;
        std::vector<double> inverse, excess;
        Index enforced = 0;
        double bound = 0.0;
    };

    static void copy(const Active& from, Active& to);
    void copy_inverse(const std::vector<double>& from, std::vector<double>& to) const;
    void load_rows();
    void start_in_box();
    double tolerance(Index i) const;
    double forgiven(Index i) const;
    Entering most_violated() const;
    Entering most_violated_bound();
    void refresh();
    Outcome bring_in(Entering entering, double cutoff);
    Outcome contradicted(const Entering& entering, double pending);
    void move(const double* line, double length);
    void find_excess();
    double largest_multiplier() const;
    void multiply_inverse(const double* by, double* product) const;
    double find_rates(double square) const;
    double careful_fall(Index side) const;
    Index blocking(double sign, double& length) const;
    bool blocked(double sign, double length) const;
    bool activate(const Entering& entering, double multiplier, double fall);
    void drop(Index k);
    void find_x();
    void find_z();

    const Rows& rows_;
    Sample& sample_;
    Gram gram_;
    const Sums& sums_;
    const Index n_, m_;
    std::vector<double> yhat_, weight_;
    std::vector<double> at_, x_;         // (n in fours,): w yhat, and x
    std::vector<double> z_;              // (n,)
    std::vector<double> lower_, upper_;  // (n in fours,) in units of x; none behind
    double largest_ = 0.0;               // of the predictions, or 1
    double room_ = 0.0;                  // a squared distance that no bound is nearer than
    // By row, in fours:
    std::vector<double> still_;          // excess at x = 0
    std::vector<double> excess_;         // at the node's optimum
    std::vector<double> magnitude_;      // ... absolute for equalities, if there are any
    const double* violation_ = nullptr;  // either of these
    std::vector<double> right_;          // right sides
    std::vector<double> holds_;          // how far it may be violated in a clause that holds
    long loaded_ = -1;                   // the edition of the sample that these are of
    std::vector<Index> equalities_;

    // ---- the state
    std::vector<Enforced> enforced_;     // the first `enforced_count_`
    std::vector<std::uint8_t> mark_;     // (2 m,): by code
    Flags pressed_;                      // (sides,): which are active
    Index enforced_count_ = 0;
    Active active_;
    std::vector<double> inverse_;        // of the active sides' products, lines of `width_`
    const Index width_;
    double bound_ = 0.0;
    bool delicate_ = false;              // whether rows of the sample were nearly dependent

    Flags passed_;                       // (2 n,): bounds that active sides repeat
    bool repeats_ = false;               // whether some bound or row was found to be repeated
    std::vector<Level> levels_;          // made when first reached
    Index untouched_ = -1;               // the level that was saved last, as long as nothing has changed
    mutable double products_[kGramColumns] = {}, rate_[kGramColumns] = {};  // of what is brought in, zeros behind
    long effort_ = 0;
};

}  // namespace gdpnet
