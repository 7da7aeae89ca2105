// Which booleans have been decided, and what clauses say then.
//
// Nodes are whatever has `enforce(code)`; whether a row holds is asked of a function, so that a node's point
// and a prediction can be judged alike.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <vector>

#include "gdpnet/component.hpp"
#include "gdpnet/leaving.hpp"
#include "gdpnet/prices.hpp"
#include "gdpnet/sample.hpp"

namespace gdpnet {

using Truth = std::int8_t;  // 1 true (chosen), -1 false or left out, 0 open

inline Index boolean_of(Index literal) { return std::abs(literal) - 1; }
inline Truth sign_of(Index literal) { return literal > 0 ? 1 : -1; }

class Assignment {
public:
    // How a clause stands.
    struct Standing {
        bool satisfied = false;
        Index open = 0;  // literals that may still be chosen
        Index last = 0;  // the last of them
    };

    explicit Assignment(const Component& component);
    Assignment(const Assignment&) = delete;
    Assignment& operator=(const Assignment&) = delete;

    const Rows& rows;
    const Logic& logic;
    std::vector<Truth> state;    // by boolean
    Vector<const bool> active;   // by clause: whether it applies to the sample
    Prices prices;

    // Opens all booleans.
    void begin(Vector<const bool> which) {
        active = which;
        decided_ = 0;
        std::fill(state.begin(), state.end(), Truth(0));
        // Without a branch: which clauses apply is as good as random, and a wrong guess costs more than the list.
        applying_ = 0;
        for (std::size_t c = 0; c < which.size(); ++c) {
            applies_[std::size_t(applying_)] = Slot(c);
            applying_ += which[c];
        }
    }
    void begin(Vector<const bool> which, Vector<const double> given, double factor) {
        begin(which);
        if (prices.any) prices.load(given, factor);
    }

    // From now on one of a sample's cheapest sets of rules is left out; null: nothing is.
    void leave_one_of(const SetsOfBatch* sets, Index s, const Prediction& prediction) {
        droppable_ = sets != nullptr && sets->rules.count() > 0 ? &sets->rules : nullptr;
        one_of_ = droppable_ != nullptr ? &sets->of(s) : nullptr;
        found_ = nullptr;
        prediction_ = prediction;
    }

    // The products of which one is still to be chosen; null where they are not listed.
    const KeptProducts* open_products() const {
        return open_sets() != nullptr && one_of_->products.count() > 0 ? &one_of_->products : nullptr;
    }

    // What the points of an open product cost at least.
    double product_bound(Index product) const { return one_of_->products.bound(product, prediction_); }

    // Leaves out the set of a product, and chooses its disjuncts. False on contradiction.
    template <class Node>
    bool choose_product(Node& node, Index product) {
        const KeptProducts& products = one_of_->products;
        leave_out_set(products.set[std::size_t(product)]);
        for (Index literal : products.literals(product))
            if (!choose(node, literal)) return false;
        return true;
    }

    // From now on the cheapest sets are looked for.
    void collect(const Droppable& rules, CheapestSets& found) {
        droppable_ = &rules;
        one_of_ = nullptr;
        found_ = &found;
    }
    bool collecting() const { return found_ != nullptr; }

    // Keeps the set that booleans leave out.
    void collect_set(const std::vector<Truth>& truth) { found_->add(set_of(truth), droppable_->left_out(truth)); }

    const Droppable* droppable() const { return droppable_; }

    // The sets of which one is still to be chosen; null where there are none.
    const CheapestSets* open_sets() const {
        const bool open = one_of_ != nullptr && one_of_->listed && state[droppable_->boolean[0]] == 0;
        return open ? one_of_ : nullptr;
    }

    // Decides that the rules of a set are left out, and no others.
    void leave_out_set(Index set) {
        for (Index k : droppable_->boolean)
            if (state[k] == 0) decide(k, -1);
        for (Index p : one_of_->sets[set]) state[droppable_->boolean[p]] = 1;
    }

    // Whether what is left out may still become a cheapest set, and while those are looked for a new one. Decides what
    // is certain.
    bool may_leave_out() {
        if (droppable_ == nullptr) return true;
        if (found_ != nullptr) return is_news();
        if (!one_of_->listed) return keep_within_importance();
        if (one_of_->sets.empty()) return false;
        if (one_of_->sets.size() == 1 && open_sets() != nullptr) leave_out_set(0);
        return true;
    }

    // The clauses that apply to the sample, in their order.
    Vector<const Slot> applying() const { return {applies_.data(), std::size_t(applying_)}; }

    Index decided() const { return decided_; }

    // Whether there is nothing but clauses of disjuncts: none nested, none that logic speaks of, none with a price.
    bool flat() const { return flat_; }

    // The booleans that are decided, in the order of their decision.
    Vector<const Index> trail() const { return {trail_.data(), std::size_t(decided_)}; }

    // Opens again what was decided since there were `count`.
    void back_to(Index count) {
        while (decided_ > count) state[trail_[--decided_]] = 0;
    }

    // What has been paid, and what clauses without a true literal owe at least; infinite where one has none left.
    double owed() const {
        double total = paid_[decided_];
        for (Index c : prices.clauses)
            if (required(c) && !has_true_literal(c)) total += least_price(c);
        return total;
    }

    // The least price of a clause's open literals.
    double least_price(Index c) const {
        double least = kInfinity;
        for (Slot e = clauses_[c].first; e < clauses_[c].last; ++e)
            if (state[literals_[e].boolean] == 0) least = std::min(least, prices.cost(e));
        return least;
    }

    bool required(Index c) const { return active[c] && guard_chosen(c); }

    // Whether one of the clauses that apply is required.
    bool guard_chosen(Index c) const {
        const Slot guard = clauses_[c].guard;
        return guard < 0 || state[guard] == 1;
    }

    bool is_true(Index literal) const { return state[boolean_of(literal)] == sign_of(literal); }

    bool has_true_literal(Index c) const {
        for (Index e = logic.clause_start[c]; e < logic.clause_start[c + 1]; ++e)
            if (is_true(logic.clause_literal[e])) return true;
        return false;
    }

    // Makes a literal true and enforces its rows. False on contradiction.
    template <class Node>
    bool choose(Node& node, Index literal) {
        const Index k = boolean_of(literal);
        if (state[k] != 0) return state[k] == sign_of(literal);
        decide(k, sign_of(literal));
        const auto& start = literal > 0 ? logic.true_start : logic.false_start;
        const auto& listed = literal > 0 ? logic.true_row : logic.false_row;
        for (Index e = start[k]; e < start[k + 1]; ++e)
            if (!node.enforce(listed[e])) return false;
        return true;
    }

    // Excludes the solutions of an explored literal. False if nothing is left.
    //
    // Leaving out a disjunct of one inequality row enforces that row's closed negation, which is what makes
    // long clauses cheap. `instead` is the literal that will be chosen; see prices.hpp.
    template <class Node>
    bool leave_out(Node& node, Index literal, Index instead) {
        const Index k = boolean_of(literal);
        if (logic.tied[k]) return choose(node, -literal);
        if (state[k] != 0) return state[k] == -1;
        decide(k, -1);
        if (prices.any && !covered(k, boolean_of(instead))) return true;
        if (logic.guarded_start[k + 1] > logic.guarded_start[k]) return true;
        const Index first = logic.true_start[k];
        const Index count = logic.true_start[k + 1] - first;
        if (count == 1 && has_negation(logic.true_row[first])) return node.enforce(rows.count() + logic.true_row[first]);
        return count > 0;
    }

    // Whether the untied disjunct k holds, the clauses nested in it included.
    //
    // Deeper nesting than one level is not recognised, which is safe: the search then branches. Disjuncts found
    // to hold are written into `mark`, if there is one.
    template <class RowHolds>
    bool holds(Index k, RowHolds row_holds, Truth* mark = nullptr) const {
        return holds(disjuncts_[k], row_holds, mark);
    }

    // How a required clause stands: a literal was chosen, or a disjunct holds as it is. What held the last time is
    // looked at first: it mostly does again.
    template <class RowHolds>
    Standing stands(Index c, RowHolds row_holds) {
        if (prices.any) return stands_at_a_price(c, row_holds);
        Clause& clause = clauses_[c];
        const Literal* const literals = literals_.data();
        const auto is_held = [&](const Literal& literal) {
            if (state[literal.boolean] == literal.sign) return true;
            return !literal.tied && holds(literal, row_holds, nullptr);
        };
        if (clause.first < clause.last && is_held(literals[clause.held])) return {true, 0, 0};
        Standing found;
        for (Slot e = clause.first; e < clause.last; ++e) {
            const Literal& literal = literals[e];
            if (e != clause.held && is_held(literal)) {
                clause.held = e;
                return {true, 0, 0};
            }
            if (state[literal.boolean] == 0) {
                ++found.open;
                found.last = literal.sign * (literal.boolean + 1);
            }
        }
        return found;
    }

    // The same of a flat logic, where rows are looked at first: for nodes that know how they stand.
    template <class RowHolds>
    Standing stands_flat(Index c, RowHolds row_holds) const {
        const Clause& clause = clauses_[c];
        const Literal *const first = literals_.data() + clause.first, *const last = literals_.data() + clause.last;
        for (const Literal* literal = first; literal != last; ++literal)
            if (rows_hold(*literal, row_holds)) return {true, 0, 0};
        Standing found;
        for (const Literal* literal = first; literal != last; ++literal) {
            const Truth truth = state[literal->boolean];
            if (truth == 1) return {true, 0, 0};
            if (truth == 0) {
                ++found.open;
                found.last = literal->boolean + 1;
            }
        }
        return found;
    }

    // The same where disjuncts cost something: one that holds must not cost more than an open one may.
    template <class RowHolds>
    Standing stands_at_a_price(Index c, RowHolds row_holds) const {
        const Clause& clause = clauses_[c];
        Standing found;
        double least = kInfinity;
        for (Slot e = clause.first; e < clause.last; ++e) {
            const Literal& literal = literals_[e];
            if (state[literal.boolean] == literal.sign) return {true, 0, 0};
            if (state[literal.boolean] != 0) continue;
            ++found.open;
            found.last = literal.sign * (literal.boolean + 1);
            least = std::min(least, prices.cost(e));
        }
        return cheapest(clause, row_holds, least) >= 0 ? Standing{true, 0, 0} : found;
    }

    // The assignment of a point at which every clause of a flat logic holds: each gets the first literal that does, and
    // its rank, the place of that literal in it; -1 where it does not apply.
    template <class RowHolds>
    void record_flat(RowHolds row_holds, Vector<Truth> best, Vector<Index> rank) const {
        std::fill(best.begin(), best.end(), Truth(0));
        std::fill(rank.begin(), rank.end(), Index(-1));
        for (const Slot c : applying()) {
            const Clause& clause = clauses_[c];
            Slot e = clause.first;
            while (e < clause.last && state[literals_[e].boolean] != 1 && !rows_hold(literals_[e], row_holds)) ++e;
            rank[c] = e - clause.first;
            if (e < clause.last) best[literals_[e].boolean] = 1;
        }
    }

    // The assignment of a point at which every required clause holds: each gets a true literal, the cheapest.
    template <class RowHolds>
    void record(RowHolds row_holds, Vector<Truth> best) const {
        for (const Literal& each : disjuncts_) {
            const Slot k = each.boolean;
            best[k] = each.tied ? state[k] : std::max(state[k], Truth(0));
            if (each.tied && state[k] == 0) {
                // Nothing asks for it any more: take the value that enforces nothing.
                const bool idle = each.first_row == each.last_row && !each.guards && prices.of(k) == 0.0 &&
                                  logic.false_start[k] < logic.false_start[k + 1];
                best[k] = idle ? 1 : -1;
            }
        }
        const Literal* const literals = literals_.data();
        for (const Slot c : applying()) {
            if (!guard_chosen(c)) continue;
            const Clause& clause = clauses_[c];
            bool satisfied = false;
            for (Slot e = clause.first; e < clause.last; ++e) satisfied |= best[literals[e].boolean] == literals[e].sign;
            if (prices.any && !satisfied) {
                const Slot chosen = cheapest(clause, row_holds, kInfinity);
                if (chosen >= 0) holds(literals[chosen], row_holds, best.data());
                continue;
            }
            for (Slot e = clause.first; e < clause.last && !satisfied; ++e)
                satisfied = !literals[e].tied && holds(literals[e], row_holds, best.data());
        }
    }

private:
    // Whether a point at which disjunct k holds costs under it, where it has been looked for, no more than `instead`.
    bool covered(Index k, Index instead) const {
        if (prices.of(k) > prices.of(instead)) return false;
        return prices.of(k) == 0.0 || !logic.tied[instead];
    }

    // Whether the closed negation of a row is a row.
    bool has_negation(Index i) const { return !rows.equality[i] && !(curved_ && rows.curved(i)); }

    void decide(Index k, Truth value) {
        state[k] = value;
        trail_[decided_++] = k;
        if (prices.any) paid_[decided_] = paid_[decided_ - 1] + (value > 0 ? prices.of(k) : 0.0);
    }

    std::vector<Index> set_of(const std::vector<Truth>& truth) const {
        std::vector<Index> set;
        for (Index p = 0; p < droppable_->count(); ++p)
            if (truth[std::size_t(droppable_->boolean[p])] == 1) set.push_back(p);
        return set;
    }

    bool is_news() const {
        const double importance = droppable_->left_out(state);
        if (importance > found_->enough()) return false;
        if (found_->cheaper(importance)) return true;
        if (!found_->listed) return false;
        return std::find(found_->sets.begin(), found_->sets.end(), set_of(state)) == found_->sets.end();
    }

    bool keep_within_importance() {
        const Droppable& rules = *droppable_;
        const double left = one_of_->enough() - rules.left_out(state);
        for (Index p = 0; p < rules.count(); ++p)
            if (state[rules.boolean[p]] == 0 && rules.importance[p] > left) decide(rules.boolean[p], -1);
        return left >= 0.0;
    }

    // What is asked of a literal most often, together in memory.
    struct Literal {
        Slot boolean;
        Slot only_row;             // of its boolean's truth, -1 if it has none or several
        Slot first_row, last_row;  // in logic.true_row
        Truth sign;
        bool tied;
        bool guards;  // whether clauses are nested in its disjunct
    };
    struct Clause {
        Slot first, last;  // literals
        Slot guard;        // boolean, or -1
        Slot held;         // the literal that made it true the last time
    };

    // Of the untied disjuncts that hold, and cost no more than `most`, the first of the cheapest; -1 where there is none.
    template <class RowHolds>
    Slot cheapest(const Clause& clause, RowHolds row_holds, double most) const {
        Slot found = -1;
        for (Slot e = clause.first; e < clause.last; ++e) {
            const double cost = prices.cost(e);
            if (literals_[e].tied || cost > most || (found >= 0 && cost >= prices.cost(found))) continue;
            if (holds(literals_[e], row_holds, nullptr)) found = e;
        }
        return found;
    }

    template <class RowHolds>
    bool rows_hold(const Literal& disjunct, RowHolds row_holds) const {
        if (disjunct.only_row >= 0) return row_holds(disjunct.only_row);
        for (Slot e = disjunct.first_row; e < disjunct.last_row; ++e)
            if (!row_holds(logic.true_row[e])) return false;
        return true;
    }

    template <class RowHolds>
    bool holds(const Literal& disjunct, RowHolds row_holds, Truth* mark) const {
        if (!rows_hold(disjunct, row_holds)) return false;
        if (disjunct.guards) {
            const Index k = disjunct.boolean;
            for (Index e = logic.guarded_start[k]; e < logic.guarded_start[k + 1]; ++e)
                if (active[logic.guarded_clause[e]] && !nested_holds(logic.guarded_clause[e], row_holds, mark)) return false;
        }
        if (mark != nullptr) mark[disjunct.boolean] = 1;
        return true;
    }

    template <class RowHolds>
    bool nested_holds(Index c, RowHolds row_holds, Truth* mark) const {
        for (Slot e = clauses_[c].first; e < clauses_[c].last; ++e) {
            const Literal& literal = literals_[e];
            if (literal.tied) {
                if (state[literal.boolean] == literal.sign) return true;
            } else if (state[literal.boolean] == 1) {
                return true;
            } else if (!literal.guards && prices.of(literal.boolean) == 0.0 && rows_hold(literal, row_holds)) {
                if (mark != nullptr) mark[literal.boolean] = 1;
                return true;
            }
        }
        return false;
    }

    std::vector<Literal> disjuncts_;  // the truth of each boolean
    std::vector<Literal> literals_;   // of all clauses
    std::vector<Clause> clauses_;
    std::vector<Index> trail_;        // booleans in the order of their decision
    std::vector<double> paid_;        // after each of them
    std::vector<Slot> applies_;       // (clauses + 1,): those that apply to the sample come first
    Index applying_ = 0;              // ... their number
    Index decided_ = 0;
    const Droppable* droppable_ = nullptr;   // rules that may be left out,
    const CheapestSets* one_of_ = nullptr;   // ... the sets that may be,
    CheapestSets* found_ = nullptr;          // ... or those found so far, while they are looked for
    Prediction prediction_{};                // ... of which sample
    const bool curved_;                // whether some row is
    bool flat_ = true;
};

inline Assignment::Assignment(const Component& component)
    : rows(component.rows),
      logic(component.logic),
      state(logic.tied.size(), 0),
      prices(logic),
      trail_(logic.tied.size()),
      paid_(logic.tied.size() + 1, 0.0),
      applies_(std::size_t(logic.clauses() + 1)),
      curved_(!component.rows.curves.none()) {
    for (Index k = 0; k < logic.booleans(); ++k) {
        const Slot first = Slot(logic.true_start[k]), last = Slot(logic.true_start[k + 1]);
        const Slot only = last == first + 1 ? Slot(logic.true_row[first]) : -1;
        const bool guards = logic.guarded_start[k] < logic.guarded_start[k + 1];
        disjuncts_.push_back({Slot(k), only, first, last, 1, logic.tied[k] != 0, guards});
    }
    for (Index literal : logic.clause_literal) {
        literals_.push_back(disjuncts_[boolean_of(literal)]);
        literals_.back().sign = sign_of(literal);
        flat_ = flat_ && literal > 0;
    }
    for (const Literal& disjunct : disjuncts_) flat_ = flat_ && !disjunct.tied && !disjunct.guards && !prices.any;

    for (Index c = 0; c < logic.clauses(); ++c)
        clauses_.push_back({Slot(logic.clause_start[c]), Slot(logic.clause_start[c + 1]), Slot(logic.clause_guard[c]),
                            Slot(logic.clause_start[c])});
}

}  // namespace gdpnet
