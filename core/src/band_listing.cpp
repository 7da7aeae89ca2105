#include "gdpnet/band/listing.hpp"

#include <algorithm>
#include <cmath>

#include "gdpnet/tolerances.hpp"

namespace gdpnet::band {

namespace {

// Up to which weight `margin + weight * change` is positive.
double keeps_sign(double margin, double change, double eps) {
    if (margin <= kDualSlack) return change > kNoChange * eps ? kInfinity : 0.0;
    return change >= 0.0 ? kInfinity : margin / -change;
}

}  // namespace

Listing::Listing(const Choices& choices, Linear& node, Assignment& assignment)
    : choices_(choices), node_(node), assignment_(assignment), chosen_(choices.proposition.size(), 0) {
    for (Index c = 0; c < Index(chosen_.size()); ++c) (choices.proposition[c] ? propositions_ : rules_).push_back(c);
}

void Listing::begin(Vector<const Truth> nearest, Index outputs, double eps, double reach, Index cap,
                    Products& products) {
    nearest_ = nearest;
    outputs_ = outputs;
    eps_ = eps;
    reach_ = reach;
    cap_ = cap;
    products_ = &products;
    products.count = 0;
    visits_ = 0;
    capped = complete_ = false;
    std::ranges::fill(chosen_, 0);
}

// ---- the search

Finish Listing::run(Stack& stack, Watch& watch, bool alive) {
    Effort effort;
    return search(node_, assignment_, stack, *this, watch, effort, alive);
}

Verdict Listing::settle(const Effort&) {
    if (assignment_.prices.any && !((owed_ = assignment_.owed()) <= reach_)) return Verdict::closed;
    const Outcome outcome = node_.solve(reach_ - owed_);
    if (outcome == Outcome::trouble) return Verdict::trouble;
    if (outcome != Outcome::optimal || node_.distance() + owed_ > reach_) return Verdict::closed;
    clause_ = next_clause();
    if (clause_ >= 0) return Verdict::branch;
    if (node_.age > kFreshAge && !node_.refactor()) return Verdict::trouble;
    keep();
    complete_ = true;
    return Verdict::closed;
}

void Listing::open(Frame& frame, const Children&) {
    frame.subject = clause_;
    frame.children = choices_.options(clause_);
    frame.first = first_option(clause_);
    chosen_[clause_] = 1;
}

bool Listing::apply(Frame& frame, const Children&) {
    const Index o = choices_.clause_start[frame.subject] + (frame.next - 1 + frame.first) % frame.children;
    for (Index e = choices_.option_start[o]; e < choices_.option_start[o + 1]; ++e) {
        if (!assignment_.choose(node_, choices_.literal[e])) return false;
    }
    return true;
}

Index Listing::next_clause() const {
    for (const Index c : rules_) {
        if (!chosen_[c] && assignment_.required(c)) return c;
    }
    for (const Index c : propositions_) {
        if (!chosen_[c] && assignment_.required(c) && !has_true_option(c)) return c;
    }
    return -1;
}

bool Listing::has_true_option(Index c) const {
    for (Index o = choices_.clause_start[c]; o < choices_.clause_start[c + 1]; ++o) {
        if (assignment_.is_true(choices_.literal[choices_.option_start[o]])) return true;
    }
    return false;
}

Index Listing::first_option(Index c) const {
    for (Index o = choices_.clause_start[c]; o < choices_.clause_start[c + 1]; ++o) {
        const Index literal = choices_.literal[choices_.option_start[o]];
        if (literal > 0 && nearest_[literal - 1] == 1) return o - choices_.clause_start[c];
    }
    return 0;
}

// ---- the pieces

void Listing::keep() {
    Products& products = *products_;
    ++visits_;
    write_piece(products.count);
    if (capped) {
        products.keep_if_distinct(cap_);
    } else if (products.count < cap_) {
        ++products.count;
    } else {
        capped = true;
        products.make_distinct(cap_);
    }
}

void Listing::write_piece(Index p) {
    Products& products = *products_;
    const auto point = products.point[p];
    const auto kind = products.kind[p];
    const auto row = products.row[p];
    double size = 1.0;
    Index count = 0;
    for (Index j = 0; j < node_.n; ++j) {
        const double x = node_.value[j];
        const double move = j < outputs_ ? x - node_.kink[j] : x;
        size += j < outputs_ ? 2.0 * move * move : move * move;
        point[j] = move;
        bool above = move > 0.0 || j >= outputs_;
        if (node_.place[j] >= 0) {
            above = node_.slope[j] >= 0.0;
        } else if (j < outputs_ && move == 0.0 && node_.lower[j] < node_.upper[j]) {
            kind[j] = Held::at_kink;
            continue;
        } else {
            Slot source = kFromBox;
            if (x == node_.lower[j]) source = node_.lower_source[j];
            if (x == node_.upper[j] && source < 0) source = node_.upper_source[j];
            if (source < 0) {
                kind[j] = Held::at_bound;
                continue;
            }
            row[count++] = source;
        }
        kind[j] = above ? Held::free_above : Held::free_below;
    }
    for (Index q = 0; q < node_.n; ++q) {
        if (node_.nonbasic[q] >= node_.n) row[count++] = std::int32_t(node_.nonbasic[q] - node_.n);
    }
    std::fill(row.begin() + count, row.end(), kNoRow);
    std::ranges::copy(assignment_.state, products.state[p].begin());
    products.paid[p] = owed_;  // all is decided here
    products.intercept[p] = node_.distance() + owed_;
    products.slope[p] = eps_ * size;
    products.limit[p] = steady_weight();
}

double Listing::steady_weight() const {
    const Index n = node_.n;
    const Matrix<double> tableau = node_.tableau;
    double limit = kInfinity;
    for (Index q = 0; q < n; ++q) {
        double change = 0.0;
        for (Index k = 0; k < node_.basics; ++k) {
            const Index j = node_.basic[k];
            double gradient = node_.value[j];
            if (j < outputs_) gradient = 2.0 * (gradient - node_.kink[j]);
            change += tableau(k, q) * eps_ * gradient;
        }
        const double reduced = node_.reduced[q];
        const Index j = node_.nonbasic[q];
        if (j >= n) {
            if (!node_.sample.rows.equality[j - n]) limit = std::min(limit, keeps_sign(reduced, change, eps_));
            continue;
        }
        const double x = node_.value[j], kink = node_.kink[j], weight = node_.weight[j];
        change += eps_ * (j < outputs_ ? 2.0 * (x - kink) : x);
        if (x < node_.upper[j]) {
            const double up = reduced + (x < kink ? -weight : weight);
            limit = std::min(limit, keeps_sign(up, change, eps_));
        }
        if (x > node_.lower[j]) {
            const double down = reduced + (x > kink ? weight : -weight);
            limit = std::min(limit, keeps_sign(-down, -change, eps_));
        }
    }
    return limit;
}

}  // namespace gdpnet::band
