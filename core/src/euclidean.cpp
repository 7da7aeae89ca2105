#include "gdpnet/euclidean.hpp"

#include <cmath>

#include "gdpnet/tolerances.hpp"

namespace gdpnet {

template <class AnyNode>
Euclidean<AnyNode>::Euclidean(AnyNode& node, Assignment& assignment)
    : best(node.point().size()),
      best_state(assignment.state.size(), 0),
      node_(node),
      assignment_(assignment),
      branching_(assignment.logic),
      label_(assignment.state.size(), 0),
      rank_(std::size_t(assignment.logic.clauses()), -1),
      best_rank_(std::size_t(assignment.logic.clauses()), -1) {}

template <class AnyNode>
void Euclidean<AnyNode>::begin(Index node_limit) {
    node_limit_ = node_limit;
    value = kInfinity;
    same_ = 0.0;
    trouble = false;
}

template <class AnyNode>
double Euclidean<AnyNode>::lower_bound(Stack& stack) const {
    return std::max(std::min(value, stack.least_open()), 0.0);
}

template <class AnyNode>
Verdict Euclidean<AnyNode>::settle(const Effort&) {
    if (assignment_.open_products() != nullptr) return Verdict::branch;
    for (int attempt = 0; attempt < 3; ++attempt) {
        switch (look()) {
            case Finding::closed:
                return Verdict::closed;
            case Finding::branch:
                return Verdict::branch;
            case Finding::trouble:
                return Verdict::trouble;
            case Finding::leaf:
                if (keep()) return Verdict::closed;
                node_.restart();  // once more, by other steps
        }
    }
    return Verdict::trouble;
}

template <class AnyNode>
void Euclidean<AnyNode>::open(Frame& frame, const Children& children) {
    if (assignment_.open_products() != nullptr) return open_products(frame, children, assignment_, cutoff());
    if (column_ >= 0) {
        open_split(frame, children, column_, split_, node_.bound() + owed_);
    } else if (!open_sets(frame, children, assignment_, branching_, node_.bound() + owed_, limit_)) {
        open_clause(frame, children, assignment_.logic, branching_, limit_);
    }
}

// Solves the node and decides what is forced, until nothing is.
template <class AnyNode>
typename Euclidean<AnyNode>::Finding Euclidean<AnyNode>::look() {
    while (true) {
        if (!assignment_.may_leave_out()) return Finding::closed;
        if (assignment_.prices.any && !((owed_ = assignment_.owed()) < cutoff())) return Finding::closed;
        const Outcome outcome = node_.solve(cutoff() - owed_);
        if (outcome == Outcome::trouble) return Finding::trouble;
        if (outcome != Outcome::optimal) return Finding::closed;
        const double bound = node_.bound() + owed_;
        limit_ = value < kInfinity && !may_come_first() ? value - same_ : cutoff();
        if (bound >= limit_) return Finding::closed;
        node_.read_point(false);
        bool forced = false;
        if (!look_at_clauses(forced)) return Finding::closed;
        if (forced) continue;
        column_ = -1;
        if (branching_.empty()) {
            column_ = node_.fractional();
            if (column_ >= 0) {
                split_ = node_.point()[column_];
                return Finding::branch;
            }
            node_.read_point(true);
            if constexpr (MayBeWhole<AnyNode>) {
                if (!node_.whole()) return make_whole(bound);
            }
            return Finding::leaf;
        }
        const auto gain_of = [&](Index literal) { return literal_gain(literal, limit_ - bound); };
        switch (branching_.choose(assignment_, bound, limit_, gain_of)) {
            case Branching::Choice::clause:
                return Finding::branch;
            case Branching::Choice::cutoff:
                return Finding::closed;
            case Branching::Choice::single:
                if (!assignment_.choose(node_, branching_.literal)) return Finding::closed;
        }
    }
}

// A node whose whole-number columns are whole but for rounding: solved once more with these fixed. If that costs
// something, or anything else does not hold then, they are split after all.
template <class AnyNode>
typename Euclidean<AnyNode>::Finding Euclidean<AnyNode>::make_whole([[maybe_unused]] double bound) {
    // Not `requires`: clang before version 16 instantiates what that excludes.
    if constexpr (MayBeWhole<AnyNode>) {
        const Index column = node_.unfixed();
        if (column < 0) return Finding::trouble;
        const double near = std::nearbyint(node_.point()[column]);
        const double split = near > node_.units.lower[column] ? near - 0.5 : near + 0.5;
        const Index decided = assignment_.decided();
        node_.keep_aside();
        node_.fix_whole();
        if (node_.solve(cutoff() - owed_) == Outcome::optimal) {
            node_.read_point(true);
            bool forced = false;
            if (look_at_clauses(forced) && !forced && branching_.empty() && keep() && node_.value() + owed_ <= bound + same_)
                return Finding::closed;
        }
        assignment_.back_to(decided);
        node_.take_back();
        column_ = column;
        split_ = split;
        return Finding::branch;
    } else {
        return Finding::leaf;
    }
}

// Lists the broken clauses; one with a single literal left has that chosen. False on contradiction.
template <class AnyNode>
bool Euclidean<AnyNode>::look_at_clauses(bool& forced) {
    const auto row_holds = node_.rows_hold();
    const bool flat = AnyNode::kRowsFirst && assignment_.flat();
    branching_.clear();
    for (const Slot c : assignment_.applying()) {
        if (!flat && !assignment_.guard_chosen(c)) continue;
        const Assignment::Standing standing =
            flat ? assignment_.stands_flat(c, row_holds) : assignment_.stands(c, row_holds);
        if (standing.satisfied) continue;
        if (standing.open == 0) return false;
        if (standing.open == 1) {
            if (!assignment_.choose(node_, standing.last)) return false;
            forced = true;
        } else {
            branching_.add(c);
        }
    }
    return true;
}

// Look-ahead of a literal, by its rows.
template <class AnyNode>
Gain Euclidean<AnyNode>::literal_gain(Index literal, double enough) const {
    const Logic& logic = assignment_.logic;
    const Index k = boolean_of(literal);
    const auto& start = literal > 0 ? logic.true_start : logic.false_start;
    const auto& listed = literal > 0 ? logic.true_row : logic.false_row;
    return node_.look_ahead({listed.data() + start[k], std::size_t(start[k + 1] - start[k])}, enough);
}

// Takes a leaf's point, if it holds and comes before the incumbent. False if it does not hold.
template <class AnyNode>
bool Euclidean<AnyNode>::keep() {
    if (!node_.verify()) return false;
    double found = node_.value();
    if (found + owed_ >= cutoff()) return true;
    label();
    found += assignment_.prices.sum(label_);
    if (found >= value - same_ && !(rank_ < best_rank_)) return true;
    value = found;
    const double distance = std::sqrt(2.0 * found);
    same_ = distance * (kSameDistance * distance + kSameDistanceFloor);
    best = node_.point();
    best_state.swap(label_);
    best_rank_.swap(rank_);
    return true;
}

// ---------------------------------------------------------------- the order of the model

// Whether a point of the node can come before the incumbent, by what has been decided.
template <class AnyNode>
bool Euclidean<AnyNode>::may_come_first() const {
    const Logic& logic = assignment_.logic;
    for (Index c = 0; c < logic.clauses(); ++c) {
        if (!assignment_.required(c) || best_rank_[c] < 0) continue;
        Index possible = -1, chosen = -1;
        for (Index e = logic.clause_start[c]; e < logic.clause_start[c + 1]; ++e) {
            const Index literal = logic.clause_literal[e];
            if (assignment_.is_true(literal)) {
                chosen = e - logic.clause_start[c];
                break;
            }
            if (possible < 0 && assignment_.state[boolean_of(literal)] == 0) possible = e - logic.clause_start[c];
        }
        // What satisfies an earlier literal, too, is found where that is chosen.
        const Index rank = chosen >= 0 ? chosen : possible;
        if (rank < 0 || rank > best_rank_[c]) return false;
        if (rank < best_rank_[c]) return true;
    }
    return false;
}

// Writes the assignment of the point at hand: of every required clause the first disjunct that holds, of the cheapest.
template <class AnyNode>
void Euclidean<AnyNode>::label() {
    const Logic& logic = assignment_.logic;
    const auto row_holds = node_.rows_hold();
    if (assignment_.flat()) return assignment_.record_flat(row_holds, label_, rank_);
    assignment_.record(row_holds, label_);
    for (Index c = 0; c < logic.clauses(); ++c) {
        rank_[c] = -1;
        if (!assignment_.required(c)) continue;
        const Index first = logic.clause_start[c];
        Index at = first;
        while (at < logic.clause_start[c + 1] && label_[boolean_of(logic.clause_literal[at])] != sign_of(logic.clause_literal[at])) ++at;
        rank_[c] = at - first;
        if (at == logic.clause_start[c + 1]) continue;
        const Index chosen = boolean_of(logic.clause_literal[at]);
        if (logic.tied[chosen] || logic.guarded_start[chosen] < logic.guarded_start[chosen + 1]) continue;
        for (Index e = first; e < at; ++e) {
            const Index k = boolean_of(logic.clause_literal[e]);
            if (logic.tied[k] || assignment_.prices.of(k) != assignment_.prices.of(chosen)) continue;
            if (!assignment_.holds(k, row_holds, label_.data())) continue;
            label_[chosen] = 0;
            rank_[c] = e - first;
            break;
        }
    }
}

template class Euclidean<EuclideanNode>;
template class Euclidean<GramNode>;

}  // namespace gdpnet
