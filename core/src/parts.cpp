#include "gdpnet/parts.hpp"

#include <algorithm>
#include <cmath>

namespace gdpnet {

namespace {

constexpr Index kPartNodes = 2000;    // of the search of a part,
constexpr Index kPenaltyNodes = 200;  // ... and of that with a literal chosen

// A node of which nothing is asked.
struct Nobody {
    bool enforce(Index) { return true; }
};

}  // namespace

bool Parts::can(const Component& component) {
    const Logic& logic = component.logic;
    if (!component.rows.curves.none() || !logic.priced.empty()) return false;
    for (Index guard : logic.clause_guard)
        if (guard >= 0) return false;
    for (auto whole : component.rows.integer)
        if (whole) return false;
    return true;
}

Parts::Parts(const Component& component, const Sample& sample, const Assignment& assignment, Vector<const double> yhat,
             Vector<const double> weights, Index most)
    : choice(component.logic.tied.size(), 0),
      component_(component),
      sample_(sample),
      assignment_(assignment),
      yhat_(yhat),
      weights_(weights),
      most_(most),
      parent_(std::size_t(component.rows.columns() + component.logic.booleans())),
      size_(parent_.size(), 0),
      clause_nodes_(std::size_t(component.logic.clauses())),
      clause_in_(std::size_t(component.logic.clauses()), 0),
      row_in_(std::size_t(component.rows.count()), 0),
      left_(std::size_t(component.logic.clauses()), 0),
      z_(std::size_t(component.rows.columns()), 0.0),
      tilt_(z_),
      part_of_(z_.size(), -1) {
    std::fill_n(size_.begin(), z_.size(), Slot(1));
    for (std::size_t node = 0; node < parent_.size(); ++node) parent_[node] = Slot(node);
    take_clauses();
}

void Parts::take_clauses() {
    const Logic& logic = component_.logic;
    clause_nodes_.resize(std::size_t(logic.clauses()));
    for (const Slot c : assignment_.applying()) {
        auto& nodes_of = clause_nodes_[c];
        const auto add = [&](const std::vector<Index>& start, const std::vector<Index>& rows, Index k) {
            for (Index e = start[k]; e < start[k + 1]; ++e) {
                const Sample::Row& row = sample_.row[rows[e]];
                for (Slot at = row.first; at < row.last; ++at) nodes_of.push_back(sample_.entry[at].column);
            }
        };
        for (Index e = logic.clause_start[c]; e < logic.clause_start[c + 1]; ++e) {
            const Index k = boolean_of(logic.clause_literal[e]);
            if (logic.tied[k]) nodes_of.push_back(component_.rows.columns() + k);
            add(logic.true_start, logic.true_row, k);
            add(logic.false_start, logic.false_row, k);
        }
        std::sort(nodes_of.begin(), nodes_of.end());
        nodes_of.erase(std::unique(nodes_of.begin(), nodes_of.end()), nodes_of.end());
    }
}

Index Parts::root(Index node) {
    while (parent_[node] != node) node = parent_[node] = parent_[parent_[node]];
    return node;
}

// Makes one part of what nodes are in. False, and nothing is changed, if it would be too large or have no column.
bool Parts::join(const std::vector<Index>& nodes_of) {
    Index total = 0;
    std::vector<Index> roots;
    for (Index node : nodes_of) {
        const Index at = root(node);
        if (std::find(roots.begin(), roots.end(), at) != roots.end()) continue;
        roots.push_back(at);
        total += size_[at];
        if (total > most_ && roots.size() > 1) return false;
    }
    if (total == 0) return false;
    const Index to = *std::min_element(roots.begin(), roots.end());
    for (Index at : roots) parent_[at] = Slot(to);
    size_[to] = Slot(total);
    return true;
}

bool Parts::grow() {
    bool grown = false;
    Assignment full(component_);
    full.begin(assignment_.active);
    Nobody nobody;
    for (Index k = 0; k < Index(choice.size()); ++k)
        if (choice[k] == 1 || (choice[k] == -1 && component_.logic.tied[k])) full.choose(nobody, choice[k] * (k + 1));
    const auto holds = [&](Index i) { return sample_.holds(i, z_.data()); };
    for (const Slot c : assignment_.applying()) {
        if (clause_in_[c] || left_[c] || full.stands(c, holds).satisfied) continue;
        (join(clause_nodes_[c]) ? clause_in_ : left_)[c] = 1;
        grown |= clause_in_[c] != 0;
    }
    std::vector<Index> columns;
    for (Index i : component_.rows.global_rows) {
        if (row_in_[i] || holds(i)) continue;
        row_in_[i] = 1;
        grown = true;
        columns.clear();
        for (Slot e = sample_.row[i].first; e < sample_.row[i].last; ++e) columns.push_back(sample_.entry[e].column);
        if (!join(columns)) coupling.push_back(i);
    }
    if (grown) form();
    return grown;
}

// The parts of what takes part; those that are as they were are kept.
void Parts::form() {
    const Index n = component_.rows.columns();
    std::vector<Slot> at(std::size_t(n), -1);
    std::vector<Part> formed;
    const auto part_at = [&](Index j) -> Part& {
        const Index r = root(j);
        if (at[r] < 0) {
            at[r] = Slot(formed.size());
            formed.emplace_back();
        }
        return formed[at[r]];
    };
    for (const Slot c : assignment_.applying())
        if (clause_in_[c]) part_at(clause_nodes_[c].front()).clauses.push_back(c);
    for (Index i : component_.rows.global_rows)
        if (row_in_[i] && std::find(coupling.begin(), coupling.end(), i) == coupling.end())
            part_at(sample_.entry[sample_.row[i].first].column).rows.push_back(i);
    std::vector<Slot> where(std::size_t(n), -1);
    for (Index j = 0; j < n; ++j) {
        const Slot p = at[root(j)];
        where[j] = p;
        if (p >= 0) formed[p].columns.push_back(j);
    }
    for (Part& part : formed) {
        const Slot before = part_of_[part.columns.front()];
        if (before >= 0) {
            Part& old = parts_[before];
            if (old.columns == part.columns && old.clauses == part.clauses && old.rows == part.rows) {
                part = std::move(old);
                continue;
            }
        }
        list_booleans(part);
        build(part);
    }
    parts_ = std::move(formed);
    part_of_ = std::move(where);
    outside_.clear();
    boolean_at_.assign(choice.size(), -1);
    for (const Part& part : parts_)
        for (std::size_t b = 0; b < part.booleans.size(); ++b) boolean_at_[part.booleans[b]] = Slot(b);
}

void Parts::list_booleans(Part& part) const {
    const Logic& logic = component_.logic;
    for (Index c : part.clauses)
        for (Index e = logic.clause_start[c]; e < logic.clause_start[c + 1]; ++e)
            part.booleans.push_back(boolean_of(logic.clause_literal[e]));
    std::sort(part.booleans.begin(), part.booleans.end());
    part.booleans.erase(std::unique(part.booleans.begin(), part.booleans.end()), part.booleans.end());
}

void Parts::build(Part& part) const {
    const Rows& rows = component_.rows;
    const Logic& logic = component_.logic;
    Component own;
    std::vector<Slot> column_at(std::size_t(rows.columns()), -1);
    for (std::size_t j = 0; j < part.columns.size(); ++j) {
        const Index full = part.columns[j];
        column_at[full] = Slot(j);
        own.rows.outputs += full < rows.outputs;
        own.rows.lower.push_back(rows.lower[full]);
        own.rows.upper.push_back(rows.upper[full]);
        own.rows.integer.push_back(rows.integer[full]);
        if (full < rows.outputs) {
            part.kink.push_back(yhat_[full]);
            part.weight.push_back(weights_[full]);
        }
    }
    std::vector<Index> full_rows;
    const auto add_row = [&](Index i) {
        const Index at = Index(full_rows.size());
        full_rows.push_back(i);
        const Sample::Row& row = sample_.row[i];
        for (Slot e = row.first; e < row.last; ++e) {
            own.rows.column.push_back(column_at[sample_.entry[e].column]);
            own.rows.coefficient.push_back(sample_.entry[e].coefficient);
        }
        own.rows.start.push_back(Index(own.rows.column.size()));
        own.rows.largest.push_back(sample_.largest[i]);
        own.rows.scale.push_back(sample_.scale[i]);
        own.rows.equality.push_back(row.equality);
        own.rows.place.push_back(-1);
        return at;
    };
    own.rows.start.push_back(0);
    for (Index i : part.rows) own.rows.global_rows.push_back(add_row(i));
    Logic& out = own.logic;
    for (auto* starts : {&out.clause_start, &out.true_start, &out.false_start, &out.guarded_start}) starts->push_back(0);
    std::vector<Slot> boolean_at(logic.tied.size(), -1);
    for (std::size_t b = 0; b < part.booleans.size(); ++b) {
        const Index k = part.booleans[b];
        boolean_at[k] = Slot(b);
        for (Index e = logic.true_start[k]; e < logic.true_start[k + 1]; ++e) out.true_row.push_back(add_row(logic.true_row[e]));
        for (Index e = logic.false_start[k]; e < logic.false_start[k + 1]; ++e)
            out.false_row.push_back(add_row(logic.false_row[e]));
        out.true_start.push_back(Index(out.true_row.size()));
        out.false_start.push_back(Index(out.false_row.size()));
        out.guarded_start.push_back(0);
        out.tied.push_back(logic.tied[k]);
    }
    for (Index c : part.clauses) {
        for (Index e = logic.clause_start[c]; e < logic.clause_start[c + 1]; ++e) {
            const Index literal = logic.clause_literal[e];
            out.clause_literal.push_back(sign_of(literal) * (boolean_at[boolean_of(literal)] + 1));
        }
        out.clause_start.push_back(Index(out.clause_literal.size()));
        out.clause_guard.push_back(-1);
    }
    part.active = std::make_unique<bool[]>(part.clauses.size());
    std::fill_n(part.active.get(), part.clauses.size(), true);
    part.search = std::make_unique<PartSearch>(std::move(own));
    for (std::size_t i = 0; i < full_rows.size(); ++i) {
        part.search->sample.row[i].rhs = sample_.row[full_rows[i]].rhs;
        part.search->sample.row[i].tolerance = sample_.row[full_rows[i]].tolerance;
    }
}

Finish Parts::search_part(Part& part, Vector<const Index> literals, double cutoff, Index node_limit, Watch& watch) {
    PartSearch& own = *part.search;
    const Rows& rows = own.component.rows;
    own.assignment.begin({part.active.get(), part.clauses.size()});
    own.nearest.begin(node_limit);
    own.nearest.below(cutoff);
    own.linear.start(rows.lower, rows.upper, part.kink, part.weight, part.tilt);
    bool alive = true;
    for (Index i : rows.global_rows) alive = alive && own.linear.enforce(i);
    for (Index literal : literals)
        alive = alive && own.assignment.choose(own.linear, sign_of(literal) * (boolean_at_[boolean_of(literal)] + 1));
    Effort effort;
    const Finish finish = search(own.linear, own.assignment, own.stack, own.nearest, watch, effort, alive);
    nodes += effort.opened;
    return finish;
}

void Parts::run(Part& part, Watch& watch) {
    const Finish finish = search_part(part, {}, kInfinity, kPartNodes, watch);
    const Nearest& nearest = part.search->nearest;
    part.solved = true;
    hard |= finish != Finish::complete;
    if (nearest.trouble || !(nearest.distance < kInfinity)) {
        failed = true;
        return;
    }
    part.value = finish == Finish::complete ? nearest.distance : nearest.lower_bound(part.search->stack);
    const auto& value = nearest.best.value;
    for (std::size_t j = 0; j < part.columns.size(); ++j) z_[part.columns[j]] = value[j];
    keep_point(part.points, {value.begin(), value.end()});
    for (std::size_t b = 0; b < part.booleans.size(); ++b) choice[part.booleans[b]] = nearest.best_state[b];
}

// What the rows that couple charge for each column. False where a column would leave for infinity.
bool Parts::set_tilts(const std::vector<double>& multipliers) {
    const Rows& rows = component_.rows;
    std::fill(tilt_.begin(), tilt_.end(), 0.0);
    for (std::size_t c = 0; c < multipliers.size(); ++c) {
        const Sample::Row& row = sample_.row[coupling[c]];
        for (Slot e = row.first; e < row.last; ++e)
            tilt_[sample_.entry[e].column] += multipliers[c] * sample_.entry[e].coefficient;
    }
    for (Index j = 0; j < rows.columns(); ++j) {
        const double weight = j < rows.outputs ? weights_[j] : 0.0;
        if (tilt_[j] > weight ? !(rows.lower[j] > -kInfinity) : tilt_[j] < -weight && !(rows.upper[j] < kInfinity)) return false;
    }
    return true;
}

double Parts::cost(Index j) const { return j < component_.rows.outputs ? weights_[j] * std::abs(z_[j] - yhat_[j]) : 0.0; }

// Puts columns that are in no part where they cost least.
double Parts::outside() {
    const Rows& rows = component_.rows;
    double total = 0.0;
    for (Index j = 0; j < rows.columns(); ++j) {
        if (part_of_[j] >= 0) continue;
        const bool output = j < rows.outputs;
        const double weight = output ? weights_[j] : 0.0;
        z_[j] = std::min(std::max(output ? yhat_[j] : 0.0, rows.lower[j]), rows.upper[j]);
        if (tilt_[j] > weight) z_[j] = rows.lower[j];
        if (tilt_[j] < -weight) z_[j] = rows.upper[j];
        total += tilt_[j] * z_[j] + cost(j);
    }
    return total;
}

void Parts::keep_point(std::vector<std::vector<double>>& points, std::vector<double>&& point) const {
    if (std::find(points.begin(), points.end(), point) == points.end()) points.push_back(std::move(point));
}

double Parts::solve(const std::vector<double>& multipliers, Watch& watch) {
    if (!set_tilts(multipliers)) return -kInfinity;
    double total = outside();
    keep_point(outside_, std::vector<double>(z_));
    for (std::size_t c = 0; c < multipliers.size(); ++c) total -= multipliers[c] * sample_.row[coupling[c]].rhs;
    std::vector<double> tilt;
    for (Part& part : parts_) {
        tilt.clear();
        for (Index j : part.columns) tilt.push_back(tilt_[j]);
        if (!part.solved || tilt != part.tilt) {
            part.tilt = tilt;
            run(part, watch);
            if (failed) return -kInfinity;
        }
        total += part.value;
    }
    return total;
}

std::vector<Cut> Parts::cuts() const {
    std::vector<Cut> found;
    const Rows& rows = component_.rows;
    std::vector<double> at(z_.size(), 0.0);
    const auto add = [&](Index p, Slot inside) {
        Cut cut{p, 0.0, std::vector<double>(coupling.size(), 0.0)};
        for (Index j = 0; j < rows.outputs; ++j)
            if (part_of_[j] == inside) cut.constant += weights_[j] * std::abs(at[j] - yhat_[j]);
        for (std::size_t c = 0; c < coupling.size(); ++c) {
            const Sample::Row& row = sample_.row[coupling[c]];
            for (Slot e = row.first; e < row.last; ++e) {
                const Slot j = sample_.entry[e].column;
                if (part_of_[j] == inside) cut.rate[c] += sample_.entry[e].coefficient * at[j];
            }
        }
        found.push_back(std::move(cut));
    };
    for (std::size_t p = 0; p < parts_.size(); ++p)
        for (const auto& point : parts_[p].points) {
            for (std::size_t j = 0; j < point.size(); ++j) at[parts_[p].columns[j]] = point[j];
            add(Index(p), Slot(p));
        }
    for (const auto& point : outside_) {
        at = point;
        add(Index(parts_.size()), -1);
    }
    return found;
}

double Parts::penalty(Part& part, Vector<const Index> literals, double worth, Watch& watch) {
    const Finish finish = search_part(part, literals, part.value + worth, kPenaltyNodes, watch);
    const Nearest& nearest = part.search->nearest;
    if (nearest.trouble) return 0.0;
    const double least = finish == Finish::complete ? nearest.distance : nearest.lower_bound(part.search->stack);
    return std::max(0.0, least - part.value);
}

double Parts::penalty(Index p, const std::vector<Index>& literals, double worth, Watch& watch) {
    Part& part = parts_[p];
    const auto [at, fresh] = part.penalties.try_emplace(literals, 0.0);
    if (fresh) at->second = penalty(part, literals, worth, watch);
    return at->second;
}

Penalties Parts::penalties(double bound, double worth, Watch& watch) {
    Penalties found;
    found.base = bound;
    found.parts = Index(parts_.size());
    found.if_true.assign(choice.size(), 0.0);
    found.if_false = found.if_true;
    found.part.assign(choice.size(), -1);
    for (std::size_t p = 0; p < parts_.size(); ++p) {
        Part& part = parts_[p];
        for (std::size_t b = 0; b < part.booleans.size(); ++b) {
            const Index k = part.booleans[b];
            found.part[k] = Slot(p);
            for (const Truth sign : {Truth(1), Truth(-1)}) {
                if (choice[k] == sign || (sign < 0 && !component_.logic.tied[k])) continue;
                const Index literal = sign * (k + 1);
                (sign > 0 ? found.if_true : found.if_false)[k] = penalty(part, {&literal, 1}, worth, watch);
            }
        }
    }
    return found;
}

}  // namespace gdpnet
