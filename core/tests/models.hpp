// Rules over a box, row by row, for tests.
#pragma once

#include <utility>
#include <vector>

#include "gdpnet/component.hpp"

namespace gdpnet {

using Row = std::vector<double>;

// The first `outputs` columns have a cost.
struct Model {
    Component component;
    std::vector<double> bound;

    Model(Index n, Index outputs, double low, double high) {
        Rows& rows = component.rows;
        rows.outputs = outputs;
        rows.lower.assign(n, low);
        rows.upper.assign(n, high);
        rows.integer.assign(n, 0);
        rows.start = {0};
        Logic& logic = component.logic;
        logic.clause_start = logic.true_start = logic.false_start = logic.guarded_start = {0};
    }

    Index add_row(const Row& a, double b, bool equality = false) {
        Rows& rows = component.rows;
        double largest = 0.0;
        for (double value : a) largest = std::max(largest, std::abs(value));
        const double scale = scale_of(largest);
        for (std::size_t j = 0; j < a.size(); ++j)
            if (a[j] != 0.0) rows.column.push_back(Index(j)), rows.coefficient.push_back(a[j] * scale);
        rows.start.push_back(Index(rows.column.size()));
        rows.scale.push_back(scale);
        rows.largest.push_back(largest);
        rows.equality.push_back(equality);
        rows.place.push_back(-1);
        bound.push_back(b);
        return Index(bound.size()) - 1;
    }

    // A rule by the rows of its disjuncts.
    void add_rule(const std::vector<std::vector<Index>>& disjuncts) {
        Logic& logic = component.logic;
        for (const auto& disjunct : disjuncts) {
            logic.true_row.insert(logic.true_row.end(), disjunct.begin(), disjunct.end());
            logic.true_start.push_back(Index(logic.true_row.size()));
            logic.false_start.push_back(0);
            logic.guarded_start.push_back(0);
            logic.tied.push_back(0);
            logic.clause_literal.push_back(Index(logic.tied.size()));
        }
        logic.clause_start.push_back(Index(logic.clause_literal.size()));
        logic.clause_guard.push_back(-1);
    }

    // A rule of new rows `a z <= b`.
    void add_rule_of(const std::vector<std::vector<std::pair<Row, double>>>& disjuncts) {
        std::vector<std::vector<Index>> rows;
        for (const auto& disjunct : disjuncts) {
            rows.emplace_back();
            for (const auto& [a, b] : disjunct) rows.back().push_back(add_row(a, b));
        }
        add_rule(rows);
    }
};

}  // namespace gdpnet
