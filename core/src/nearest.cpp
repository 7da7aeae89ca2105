#include "gdpnet/nearest.hpp"

#include <cmath>

namespace gdpnet {

Nearest::Nearest(Linear& node, Assignment& assignment)
    : best(node.n),
      best_state(assignment.state.size(), 0),
      node_(node),
      assignment_(assignment),
      branching_(assignment.logic) {}

void Nearest::begin(Index node_limit) {
    node_limit_ = node_limit;
    distance = kInfinity;
    cutoff_ = kInfinity;
    floor = -kInfinity;
    penalised_ = {};
    trouble = false;
}

double Nearest::lower_bound(Stack& stack) const {
    return std::min(distance, std::max(floor, stack.least_open()));
}

Verdict Nearest::settle(const Effort&) {
    if (assignment_.open_products() != nullptr) return Verdict::branch;
    for (int attempt = 0; attempt < 4; ++attempt) {
        switch (look()) {
            case Finding::infeasible:
            case Finding::cutoff:
                return Verdict::closed;
            case Finding::clause:
                column_ = -1;
                return Verdict::branch;
            case Finding::column:
                column_ = most_fractional();
                return Verdict::branch;
            case Finding::trouble:
                return Verdict::trouble;
            case Finding::leaf:
                // Judged at a point that no earlier step has worn: clauses that held by themselves, too.
                if (node_.curved ? node_.verify_curved() : node_.refactor() && node_.verify()) {
                    if (!(distance_of_node() + owed_ < cutoff_)) return Verdict::closed;
                    if (!node_.curved && !still_holds()) continue;
                    keep();
                    return Verdict::closed;
                }
                if (attempt > 0) node_.reset();
        }
    }
    return Verdict::trouble;
}

void Nearest::open(Frame& frame, const Children& children) {
    if (assignment_.open_products() != nullptr) return open_products(frame, children, assignment_, cutoff_);
    if (column_ >= 0) {
        open_split(frame, children, column_, node_.point()[column_], node_.dual_objective() + owed_);
        return;
    }
    if (open_sets(frame, children, assignment_, branching_, node_.dual_objective() + owed_, cutoff_)) return;
    open_clause(frame, children, assignment_.logic, branching_, cutoff_);
}

// Solves the node and decides what is forced, until nothing is.
Nearest::Finding Nearest::look() {
    while (true) {
        if (!assignment_.may_leave_out()) return Finding::infeasible;
        if (assignment_.prices.any && !((owed_ = assignment_.owed()) < cutoff_)) return Finding::cutoff;
        if (penalised_.penalties != nullptr) {
            penalised_.look(assignment_);
            penalised_.look_closely(cutoff_);
            if (!(penalised_.total < cutoff_)) return Finding::cutoff;
        }
        switch (node_.solve(cutoff_ - owed_)) {
            case Outcome::infeasible:
                return Finding::infeasible;
            case Outcome::cutoff:
                return Finding::cutoff;
            case Outcome::trouble:
                return Finding::trouble;
            case Outcome::optimal:
                break;
        }
        bool forced = false;
        Finding found = look_at_clauses(forced);
        if (forced) continue;
        if (found != Finding::clause) return found;
        found = look_ahead(forced);
        if (!forced) return found;
    }
}

Nearest::Finding Nearest::look_at_clauses(bool& forced) {
    if (node_.curved) return look_at_clauses_by([this](Index i) { return node_.holds(i); }, forced);
    return look_at_clauses_by(
        [&sample = node_.sample, z = node_.value.data()](Index i) { return sample.holds(i, z); }, forced);
}

// Lists the broken clauses; one with a single literal left has that chosen.
template <class RowHolds>
Nearest::Finding Nearest::look_at_clauses_by(RowHolds row_holds, bool& forced) {
    branching_.clear();
    for (const Slot c : assignment_.applying()) {
        if (!assignment_.guard_chosen(c)) continue;
        const Assignment::Standing standing = assignment_.stands(c, row_holds);
        if (standing.satisfied) continue;
        if (standing.open == 0 || (standing.open == 1 && !assignment_.choose(node_, standing.last))) {
            forced = false;
            return Finding::infeasible;
        }
        if (standing.open == 1) {
            forced = true;
        } else {
            branching_.add(c);
        }
    }
    if (!branching_.empty()) return Finding::clause;
    return whole() ? Finding::leaf : Finding::column;
}

// Whether every clause still has a literal that holds, or one that was chosen.
bool Nearest::still_holds() {
    const auto row_holds = [this](Index i) { return node_.sample.holds(i, node_.value.data()); };
    for (const Slot c : assignment_.applying())
        if (assignment_.guard_chosen(c) && !assignment_.stands(c, row_holds).satisfied) return false;
    return true;
}

// What each broken clause costs at least, and which is best to branch on.
Nearest::Finding Nearest::look_ahead(bool& forced) {
    const auto gain_of = [this](Index literal) { return literal_gain(literal); };
    node_.begin_look_ahead();
    switch (branching_.choose(assignment_, node_.dual_objective() + owed_, cutoff_, gain_of, penalised_.total)) {
        case Branching::Choice::clause:
            return Finding::clause;
        case Branching::Choice::single:
            forced = assignment_.choose(node_, branching_.literal);
            return Finding::cutoff;  // unless something was forced
        case Branching::Choice::cutoff:
            break;
    }
    return Finding::cutoff;
}

// Look-ahead of a literal: the best of its rows.
Gain Nearest::literal_gain(Index literal) {
    const Logic& logic = assignment_.logic;
    const Index k = boolean_of(literal);
    const auto& start = literal > 0 ? logic.true_start : logic.false_start;
    const auto& listed = literal > 0 ? logic.true_row : logic.false_row;
    Gain found;
    if (penalised_.penalties != nullptr) {
        found.floor = penalised_.with(literal);
        if (!(found.floor < cutoff_)) return {kInfinity, 0, 0};
    }
    for (Index e = start[k]; e < start[k + 1]; ++e) {
        const Index i = listed[e];
        if (node_.curved && node_.sample.rows.curved(i)) {
            const Gain ahead = node_.look_ahead_curved(i);
            if (ahead.gain > found.gain) found = ahead;
            continue;
        }
        const Sample::Row& row = node_.sample.row[i];
        const double excess = node_.sample.excess(i, node_.value.data());
        const double size = row.equality ? std::abs(excess) : excess;
        if (size > row.tolerance) {
            const Gain ahead = node_.look_ahead(i, excess);
            if (ahead.gain > found.gain) found = {ahead.gain, ahead.up, ahead.down, found.floor};
        }
    }
    return found;
}

bool Nearest::whole() const {
    for (Index j = 0; j < node_.n; ++j) {
        if (!assignment_.rows.integer[j]) continue;
        // A column on one of its breakpoints is that number to the last digit; what a curve determines is not rounded.
        const double x = node_.point()[j], allowed = node_.place[j] >= 0 && !node_.curved ? whole_slack(x) : 0.0;
        if (std::abs(x - std::nearbyint(x)) > allowed) return false;
    }
    return true;
}

Index Nearest::most_fractional() const {
    double worst = -1.0;
    Index column = 0;
    for (Index j = 0; j < node_.n; ++j) {
        if (!assignment_.rows.integer[j]) continue;
        const double x = node_.point()[j], away = std::abs(x - std::nearbyint(x));
        if (away > worst) {
            worst = away;
            column = j;
        }
    }
    return column;
}

void Nearest::keep() {
    best.copy(node_);
    if (node_.curved) std::copy_n(node_.point(), node_.n, best.value.begin());
    if (node_.curved) {
        assignment_.record([this](Index i) { return node_.holds(i); }, best_state);
    } else {
        assignment_.record([this](Index i) { return node_.sample.holds(i, node_.value.data()); }, best_state);
    }
    distance = distance_of_node() + assignment_.prices.sum(best_state);
    cutoff_ = distance - kImprovement * std::max(1.0, distance);
    if (assignment_.collecting()) {
        assignment_.collect_set(best_state);
        cutoff_ = kInfinity;
    }
}

}  // namespace gdpnet
