// Which booleans have been decided, and what clauses say then.
//
// Nodes are whatever has `enforce(code)`; whether a row holds is asked of a function, so that a node's point
// and a prediction can be judged alike.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <vector>

#include "gdpnet/component.hpp"

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

    explicit Assignment(const Component& component)
        : rows(component.rows), logic(component.logic), state(logic.tied.size(), 0), trail_(logic.tied.size()) {}
    Assignment(const Assignment&) = delete;
    Assignment& operator=(const Assignment&) = delete;

    const Rows& rows;
    const Logic& logic;
    std::vector<Truth> state;    // by boolean
    Vector<const bool> active;   // by clause: whether it applies to the sample

    // Opens all booleans.
    void begin(Vector<const bool> which) {
        active = which;
        decided_ = 0;
        std::fill(state.begin(), state.end(), Truth(0));
    }

    Index decided() const { return decided_; }

    // Opens again what was decided since there were `count`.
    void back_to(Index count) {
        while (decided_ > count) state[trail_[--decided_]] = 0;
    }

    bool required(Index c) const {
        const Index guard = logic.clause_guard[c];
        return active[c] && (guard < 0 || state[guard] == 1);
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
    // long clauses cheap.
    template <class Node>
    bool leave_out(Node& node, Index literal) {
        const Index k = boolean_of(literal);
        if (logic.tied[k]) return choose(node, -literal);
        if (state[k] != 0) return state[k] == -1;
        decide(k, -1);
        if (logic.guarded_start[k + 1] > logic.guarded_start[k]) return true;
        const Index first = logic.true_start[k];
        const Index count = logic.true_start[k + 1] - first;
        if (count == 1 && !rows.equality[logic.true_row[first]]) return node.enforce(rows.count() + logic.true_row[first]);
        return count > 0;
    }

    // Whether the untied disjunct k holds, the clauses nested in it included.
    //
    // Deeper nesting than one level is not recognised, which is safe: the search then branches. Disjuncts found
    // to hold are written into `mark`, if there is one.
    template <class RowHolds>
    bool holds(Index k, RowHolds row_holds, Truth* mark = nullptr) const {
        if (!rows_hold(k, row_holds)) return false;
        for (Index e = logic.guarded_start[k]; e < logic.guarded_start[k + 1]; ++e)
            if (active[logic.guarded_clause[e]] && !nested_holds(logic.guarded_clause[e], row_holds, mark)) return false;
        if (mark != nullptr) mark[k] = 1;
        return true;
    }

    // How a required clause stands: a literal was chosen, or a disjunct holds as it is.
    template <class RowHolds>
    Standing stands(Index c, RowHolds row_holds) const {
        Standing found;
        for (Index e = logic.clause_start[c]; e < logic.clause_start[c + 1]; ++e) {
            const Index literal = logic.clause_literal[e];
            const Index k = boolean_of(literal);
            if (is_true(literal) || (!logic.tied[k] && holds(k, row_holds))) {
                found.satisfied = true;
                return found;
            }
            if (state[k] == 0) {
                ++found.open;
                found.last = literal;
            }
        }
        return found;
    }

    // The assignment of a point at which every required clause holds: each gets a true literal.
    template <class RowHolds>
    void record(RowHolds row_holds, Vector<Truth> best) const {
        for (Index k = 0; k < logic.booleans(); ++k) {
            best[k] = state[k];
            if (!logic.tied[k] && state[k] < 0) best[k] = 0;
            if (logic.tied[k] && state[k] == 0) {
                // Nothing asks for it any more: take the value that enforces nothing.
                const bool idle = logic.true_start[k] == logic.true_start[k + 1] &&
                                  logic.guarded_start[k] == logic.guarded_start[k + 1] &&
                                  logic.false_start[k] < logic.false_start[k + 1];
                best[k] = idle ? 1 : -1;
            }
        }
        for (Index c = 0; c < logic.clauses(); ++c) {
            if (!required(c)) continue;
            bool satisfied = false;
            for (Index e = logic.clause_start[c]; e < logic.clause_start[c + 1] && !satisfied; ++e)
                satisfied = best[boolean_of(logic.clause_literal[e])] == sign_of(logic.clause_literal[e]);
            for (Index e = logic.clause_start[c]; e < logic.clause_start[c + 1] && !satisfied; ++e) {
                const Index k = boolean_of(logic.clause_literal[e]);
                satisfied = !logic.tied[k] && holds(k, row_holds, best.data());
            }
        }
    }

private:
    void decide(Index k, Truth value) {
        state[k] = value;
        trail_[decided_++] = k;
    }

    template <class RowHolds>
    bool rows_hold(Index k, RowHolds row_holds) const {
        for (Index e = logic.true_start[k]; e < logic.true_start[k + 1]; ++e)
            if (!row_holds(logic.true_row[e])) return false;
        return true;
    }

    template <class RowHolds>
    bool nested_holds(Index c, RowHolds row_holds, Truth* mark) const {
        for (Index e = logic.clause_start[c]; e < logic.clause_start[c + 1]; ++e) {
            const Index literal = logic.clause_literal[e];
            const Index k = boolean_of(literal);
            if (logic.tied[k]) {
                if (is_true(literal)) return true;
            } else if (state[k] == 1) {
                return true;
            } else if (logic.guarded_start[k] == logic.guarded_start[k + 1] && rows_hold(k, row_holds)) {
                if (mark != nullptr) mark[k] = 1;
                return true;
            }
        }
        return false;
    }

    std::vector<Index> trail_;  // booleans in the order of their decision
    Index decided_ = 0;
};

}  // namespace gdpnet
