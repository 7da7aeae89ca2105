#include "gdpnet/least_norm.hpp"

#include "gdpnet/tolerances.hpp"

namespace gdpnet {

namespace {

// The largest cost rate by which a centre holds its auxiliary back, beyond rounding.
double pull_of_centres(const Quadratic& q) {
    double pull = 0.0, size = q.price;
    for (Index j = 0; j < q.n; ++j)
        if (!q.kinked[j]) pull = std::max(pull, q.curvature[j] * std::abs(q.x[j] - q.centre[j]));
    for (Index k = 0; k < q.active_count; ++k) size = std::max(size, std::abs(q.multiplier[k]));
    return pull - 1e-15 * size;
}

// What the centres may add to the value of a node at most. Of an auxiliary without bounds it is supposed
// that it need not move by more than `kFar`.
double cost_of_centres(const Quadratic& q) {
    double total = 0.0;
    for (Index j = 0; j < q.n; ++j) {
        if (q.kinked[j]) continue;
        const double reach = std::min(std::max(q.upper[j] - q.centre[j], q.centre[j] - q.lower[j]), kFar);
        total += 0.5 * q.curvature[j] * reach * reach;
    }
    return total;
}

// Solves a node's program; with auxiliaries until their centre does not matter.
Quadratic::Outcome solve_node(Quadratic& q, bool auxiliaries, double cutoff) {
    bool restarted = false;
    for (int round = 0; round < kCentres; ++round) {
        // Away from the final centre the value is a lower bound only up to the centres' cost.
        const auto outcome = q.minimise(auxiliaries ? cutoff + cost_of_centres(q) : cutoff);
        if (outcome == Quadratic::Outcome::trouble && !restarted) {
            restarted = true;
            q.restart();
            continue;
        }
        if (outcome != Quadratic::Outcome::optimal || !auxiliaries || pull_of_centres(q) <= kSettled) return outcome;
        for (Index j = 0; j < q.n; ++j)
            if (!q.kinked[j]) q.centre[j] = q.x[j];
        q.restart();
    }
    return Quadratic::Outcome::trouble;
}

// The l1 norm and the squared l2 norm of a point, in units of the distance.
struct Norms {
    Norms(const Given& given, Vector<const double> z, double distance) {
        for (std::size_t j = 0; j < given.yhat.size(); ++j) {
            const double x = std::abs(given.weights[j] * (z[j] - given.yhat[j]));
            first += x;
            second += (x / distance) * (x / distance);
        }
        first /= distance;
    }
    double first = 0.0, second = 0.0;
};

}  // namespace

// One search with a given price, from the incumbent.
class LeastNorm::Visit {
public:
    Visit(LeastNorm& own, const Given& given, double distance, double price, Index node_limit)
        : own_(own),
          node_(own.node_),
          assignment_(own.assignment_),
          given_(given),
          distance_(distance),
          price_(price),
          node_limit_(node_limit),
          allowance_(price >= kLastPrice ? 1e-9 * std::max(1.0, 1.0 / distance) : 1e-10 + 1e-12 / distance) {}

    Tie tie = Tie::settled;
    bool too_cheap = false;  // a leaf showed that the price is too small

    Verdict settle(const Effort& effort) {
        settled_ = effort.settled;
        return look();
    }

    void open(Frame& frame, const Children& children) {
        frame.bound = node_.q.bound_value();
        if (column_ >= 0) {
            open_split(frame, children, column_, node_.units.z[column_], frame.bound);
            return;
        }
        frame.subject = clause_;
        const Logic& logic = assignment_.logic;
        for (Index e = logic.clause_start[clause_]; e < logic.clause_start[clause_ + 1]; ++e) {
            const Index literal = logic.clause_literal[e];
            if (assignment_.state[boolean_of(literal)] == 0) insert_child(frame, children, literal, score(literal));
        }
    }

    bool wants(const Frame& frame, const Children&) const { return frame.bound < cutoff(); }
    bool apply(Frame& frame, const Children& children) { return apply_child(node_, assignment_, frame, children); }
    void close(const Frame&) {}
    bool exhausted(const Effort& effort) const { return effort.settled >= node_limit_; }
    bool troubled() {
        tie = Tie::doubtful;
        return true;
    }

private:
    // The value from which on a node has nothing to offer. While the search is small, nodes that can only
    // equal the incumbent are looked at, too: which of several equally near points is taken must not depend
    // on the order of the rules.
    double cutoff() const {
        if (settled_ < kTieNodes) return price_ * (1.0 + 1e-12) + 0.5 * (own_.best_ + kSameNorm);
        return price_ * (1.0 + 4e-15) + 0.5 * own_.best_ - 1e-10;
    }

    // The largest violation among a literal's rows, in units of the distance.
    double score(Index literal) const {
        const Logic& logic = assignment_.logic;
        const Index k = boolean_of(literal);
        const auto& start = literal > 0 ? logic.true_start : logic.false_start;
        const auto& listed = literal > 0 ? logic.true_row : logic.false_row;
        double worst = 0.0;
        for (Index e = start[k]; e < start[k + 1]; ++e) {
            const double over = node_.q.excess(listed[e]);
            worst = std::max(worst, node_.q.equality[listed[e]] ? std::abs(over) : over);
        }
        return worst;
    }

    // Solves the node, decides what is forced, and says what it is.
    Verdict look() {
        const bool auxiliaries = node_.rows.outputs < node_.q.n;
        const double limit = cutoff();
        while (true) {
            const auto outcome = solve_node(node_.q, auxiliaries, limit);
            if (outcome == Quadratic::Outcome::trouble) return Verdict::trouble;
            if (outcome != Quadratic::Outcome::optimal || node_.q.bound_value() >= limit) return Verdict::closed;
            node_.q.refine();
            node_.units.read_point(node_.q);
            bool forced = false;
            if (!look_at_clauses(forced)) return Verdict::closed;
            if (forced) continue;
            column_ = clause_ < 0 ? node_.fractional() : -1;
            if (clause_ >= 0 || column_ >= 0) return Verdict::branch;
            return leaf();
        }
    }

    // Decides what is forced at z and finds the clause to branch on, -1 if all hold. False on contradiction.
    bool look_at_clauses(bool& forced) {
        const Logic& logic = assignment_.logic;
        double worst = -1.0;
        clause_ = -1;
        for (Index c = 0; c < logic.clauses(); ++c) {
            if (!assignment_.required(c)) continue;
            const auto standing = assignment_.stands(c, [&](Index i) { return node_.row_holds(i); });
            if (standing.satisfied) continue;
            if (standing.open == 0) return false;
            if (standing.open == 1) {
                if (!assignment_.choose(node_, standing.last)) return false;
                forced = true;
                continue;
            }
            double least = kInfinity;
            for (Index e = logic.clause_start[c]; e < logic.clause_start[c + 1]; ++e) {
                const Index literal = logic.clause_literal[e];
                if (assignment_.state[boolean_of(literal)] == 0) least = std::min(least, score(literal));
            }
            if (least > worst) worst = least, clause_ = c;
        }
        return true;
    }

    Verdict leaf() {
        const Norms norms(given_, node_.units.z, distance_);
        if (!node_.units.enforced_rows_hold(node_.q)) return Verdict::trouble;
        // The distance was not the least one.
        if (norms.first < 1.0 - 1e-9 * std::max(1.0, 1.0 / distance_)) return Verdict::trouble;
        if (norms.first > 1.0 + allowance_) {
            if (price_ >= kLastPrice) return Verdict::trouble;
            too_cheap = true;
            return Verdict::stop;
        }
        if (is_better(norms.second)) {
            own_.best_ = norms.second;
            own_.best_z_ = node_.units.z;
            assignment_.record([&](Index i) { return node_.row_holds(i); }, own_.best_state_);
        }
        return Verdict::closed;
    }

    // Whether z comes before the incumbent: smaller norm, or first differing output larger.
    bool is_better(double norm) const {
        if (std::abs(norm - own_.best_) > kSameNorm) return norm < own_.best_;
        for (std::size_t j = 0; j < given_.yhat.size(); ++j) {
            const double ahead = (node_.units.z[j] - own_.best_z_[j]) * given_.weights[j] / distance_;
            if (std::abs(ahead) > kSameOutput) return ahead > 0.0;
        }
        return norm < own_.best_ - kBetterNorm;
    }

    LeastNorm& own_;
    QuadraticNode& node_;
    Assignment& assignment_;
    const Given& given_;
    const double distance_, price_;
    const Index node_limit_;
    const double allowance_;  // by which the l1 norm of a leaf may exceed 1
    Index settled_ = 0;
    Index clause_ = -1, column_ = -1;  // to branch on
};

LeastNorm::LeastNorm(const Component& component)
    : node_(component.rows),
      assignment_(component),
      stack_(component),
      best_z_(component.rows.lower.size()),
      best_state_(component.logic.tied.size()) {}

Tie LeastNorm::settle(const Given& given, Vector<double> z, Vector<std::int8_t> assignment, double distance,
                      Index node_limit, Watch& watch, Index& nodes) {
    nodes = 0;
    if (!(distance > 1e-13 && distance < kInfinity)) return Tie::settled;  // the prediction itself, or no point at all
    node_.units.load(node_.q, node_.rows, given.varying, given.bound, given.yhat, given.weights, z, distance);
    const Norms norms(given, z, distance);
    if (!(std::abs(norms.first - 1.0) <= 1e-9 * std::max(1.0, 1.0 / distance))) return Tie::doubtful;
    std::copy(z.begin(), z.end(), best_z_.begin());
    std::copy(assignment.begin(), assignment.end(), best_state_.begin());
    best_ = norms.second;
    watch.begin_sample();
    Effort effort;
    effort.opened = 0;
    Tie tie = Tie::settled;
    for (double price = kFirstPrice;; price *= kPriceFactor) {
        Visit visit(*this, given, distance, price, node_limit);
        assignment_.begin(given.active);
        node_.q.price = price;
        std::fill(node_.q.centre.begin(), node_.q.centre.end(), 0.0);
        node_.begin();
        node_.q.restart();
        ++effort.opened;
        const Finish finish = search(node_, assignment_, stack_, visit, watch, effort);
        tie = visit.tie;
        if (finish == Finish::limited && tie == Tie::settled) tie = Tie::limited;
        if (!visit.too_cheap) break;
    }
    nodes = effort.settled;
    for (std::size_t j = 0; j < best_z_.size(); ++j) z[j] = node_.rows.integer[j] ? std::nearbyint(best_z_[j]) : best_z_[j];
    std::copy(best_state_.begin(), best_state_.end(), assignment.begin());
    return tie;
}

}  // namespace gdpnet
