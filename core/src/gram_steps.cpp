// Steps of the dual method in terms of products of rows.
#include "gdpnet/gram_node.hpp"
#include "gdpnet/tolerances.hpp"

namespace gdpnet {

Outcome GramNode::solve(double cutoff) {
    if (repeats_) {
        for (Index e = 0; e < enforced_count_; ++e) mark_[enforced_[e].code] = kEnforced;
        std::fill(passed_.begin(), passed_.end(), std::uint8_t(0));
        repeats_ = false;
    }
    const Index rounds = 20 * (n_ + m_) + 100;
    bool refreshed = false;
    for (Index round = 0; round < rounds; ++round) {
        Entering worst = most_violated();
        if (worst.side < 0 && 2.0 * bound_ > room_) worst = most_violated_bound();
        if (worst.side < 0) {
            if (refreshed || !delicate_) return Outcome::optimal;
            refresh();
            refreshed = true;
            continue;
        }
        untouched_ = -1;
        const Outcome outcome = bring_in(worst, cutoff);
        if (outcome != Outcome::optimal) return outcome;
        refreshed = false;
        if (!(bound_ >= cutoff)) continue;
        refresh();
        if (bound_ >= cutoff) return Outcome::cutoff;
    }
    return Outcome::trouble;
}

// An excess up to which a row is not violated; and to which it does not contradict others.
double GramNode::tolerance(Index i) const {
    const Sample::Row& row = sample_.row[i];
    return gram_.factor(i) * std::min(kRowRounding * std::max(largest_, std::abs(row.rhs)), 0.1 * row.tolerance);
}

double GramNode::forgiven(Index i) const {
    return gram_.factor(i) * kFeasibility * std::max(largest_, std::abs(sample_.row[i].rhs));
}

// Of the enforced rows.
GramNode::Entering GramNode::most_violated() const {
    Index found = -1;
    double most = 0.0;
    for (Index e = 0; e < enforced_count_; ++e) {
        const Enforced& at = enforced_[e];
        const double excess = excess_[at.row], over = at.sign == 0.0 ? std::abs(excess) : at.sign * excess;
        if (!(over > most) || pressed_[at.row] || mark_[at.code] != kEnforced || !(over > tolerance(at.row))) continue;
        most = over;
        found = e;
    }
    if (found < 0) return {};
    const auto [code, row, sign] = enforced_[found];
    const bool free = sign == 0.0;
    return {row, free ? (excess_[row] < 0.0 ? -1.0 : 1.0) : sign, most, still_[row], code, free};
}

GramNode::Entering GramNode::most_violated_bound() {
    Entering worst;
    find_x();
    const double *x = x_.data(), *upper = upper_.data(), *lower = lower_.data();
    Four most = Four::all(0.0);
    for (Index j = 0; j < width_; j += kAbreast) {
        const Four at = Four::at(x + j);
        most = larger(most, larger(at - Four::at(upper + j), Four::at(lower + j) - at));
    }
    if (!(most.largest() > kColumnTolerance)) return worst;
    for (Index j = 0; j < n_; ++j) {
        const double above = x[j] - upper[j], below = lower[j] - x[j];
        const double over = above > below ? above : below;
        if (!(over > worst.excess) || pressed_[m_ + j]) continue;
        if (!(over > kColumnTolerance * std::max(1.0, std::abs(at_[j]))) || passed_[above > below ? j : n_ + j]) continue;
        worst = above > below ? Entering{m_ + j, 1.0, above, -upper[j], -1, false}
                              : Entering{m_ + j, -1.0, below, -lower[j], -1, false};
    }
    return worst;
}

// Multipliers once more, from their equations, and the bound from them: steps add up rounding errors.
void GramNode::refresh() {
    double left[kGramColumns] = {};
    const auto find_left = [&] {
        for (Index k = 0; k < active_.count; ++k) {
            left[k] = active_.still[k];
            for (Index l = 0; l < active_.count; ++l) left[k] -= active_.multiplier[l] * active_.line[l][active_.side[k]];
        }
    };
    find_left();
    multiply_inverse(left, rate_);
    for (Index k = 0; k < active_.count; ++k) active_.multiplier[k] += rate_[k];
    find_left();
    bound_ = 0.0;
    for (Index k = 0; k < active_.count; ++k) bound_ += 0.5 * active_.multiplier[k] * (active_.still[k] + left[k]);
    find_excess();
}

// Excesses of all rows, from the multipliers.
void GramNode::find_excess() {
    sums_.take_off(still_.data(), active_.multiplier, active_.line, active_.count, excess_.data(), m_);
}

// What a step of the multiplier of a side, whose products with others are its `line`, does to excesses.
void GramNode::move(const double* line, double length) {
    sums_.move(excess_.data(), length, line, rate_, active_.line, active_.count, m_);
}

// Raises the multiplier of a violated side until it holds, or the bound reaches the cutoff: then the node is of no
// interest any more, and left as it is. Where rounding is to be looked after, the caller does that first.
Outcome GramNode::bring_in(Entering entering, double cutoff) {
    const Index p = entering.side;
    const double square = gram_.square(p);
    const double* line = gram_.line(p);
    double pending = 0.0;
    const Index rounds = 4 * n_ + 8;
    for (Index round = 0; round < rounds; ++round) {
        effort_ += 4 + active_.count * (active_.count + 8);
        for (Index k = 0; k < active_.count; ++k) products_[k] = line[active_.side[k]];
        double fall = find_rates(square), length = kInfinity;
        if (!(fall > kNearlyDependent * square)) {
            fall = careful_fall(p);
            if (!(fall <= kParallel * square)) return Outcome::trouble;
            fall = 0.0;
        }
        const double full = fall > 0.0 ? entering.excess / fall : kInfinity;
        const Index block = blocked(entering.sign, full) ? blocking(entering.sign, length) : -1;
        if (block < 0 && full == kInfinity) return contradicted(entering, pending);
        const double t = std::min(full, length), signed_t = entering.sign * t;
        if (!(t >= 0.0)) return Outcome::trouble;  // no number
        bound_ += t * (entering.excess - 0.5 * t * fall);
        if (bound_ >= cutoff && !delicate_) return Outcome::cutoff;
        for (Index k = 0; k < active_.count; ++k) active_.multiplier[k] -= signed_t * rate_[k];
        move(line, signed_t);
        entering.excess -= t * fall;
        pending += t;
        if (full <= length) return activate(entering, entering.sign * pending, fall) ? Outcome::optimal : Outcome::trouble;
        drop(block);
    }
    return Outcome::trouble;
}

// No multiplier lets a side be brought in: it contradicts the active ones, or repeats them up to rounding.
Outcome GramNode::contradicted(const Entering& entering, double pending) {
    const Index p = entering.side;
    const bool row = p < m_;
    const double allowed = row ? forgiven(p) : kAccepted * std::max(1.0, std::abs(at_[p - m_]));
    if (entering.excess > std::max(kDoubtful * allowed, kDrifted * largest_multiplier())) return Outcome::infeasible;
    if (!(entering.excess <= allowed) || pending > 0.0) return Outcome::trouble;
    repeats_ = true;
    if (row) {
        mark_[entering.code] |= kIgnored;
    } else {
        passed_[entering.sign > 0.0 ? p - m_ : n_ + p - m_] = 1;
    }
    return Outcome::optimal;
}

double GramNode::largest_multiplier() const {
    double largest = 0.0;
    for (Index k = 0; k < active_.count; ++k) largest = std::max(largest, std::abs(active_.multiplier[k]));
    return largest;
}

void GramNode::multiply_inverse(const double* by, double* product) const {
    sums_.add_up(by, inverse_.data(), width_, active_.count, product, active_.count);
}

// The rates at which multipliers change as that of a side with these `products_` rises, and returns the rate at which
// its excess falls.
double GramNode::find_rates(double square) const {
    multiply_inverse(products_, rate_);
    for (Index k = 0; k < active_.count; ++k) square -= rate_[k] * products_[k];
    return square;
}

// That rate without cancellation.
double GramNode::careful_fall(Index side) const {
    const double* own = gram_.normal(side);
    double total = 0.0;
    for (Index j = 0; j < n_; ++j) {
        double left = own[j];
        for (Index k = 0; k < active_.count; ++k) left -= rate_[k] * gram_.normal(active_.side[k])[j];
        total += left * left;
    }
    return total;
}

// Whether a multiplier would get a wrong sign within a step of this length.
bool GramNode::blocked(double sign, double length) const {
    bool found = false;
    for (Index k = 0; k < active_.count; ++k) {
        const double speed = sign * active_.sign[k] * rate_[k], room = active_.sign[k] * active_.multiplier[k];
        found |= (speed > kSmallRate) & (std::max(room, 0.0) < length * speed);
    }
    return found;
}

// The first multiplier that would get a wrong sign, of nearly equal ones the steepest; -1 if there is none.
Index GramNode::blocking(double sign, double& length) const {
    double reach = kInfinity, steepest = kSmallRate;
    Index found = -1;
    const auto speed = [&](Index k) { return sign * active_.sign[k] * rate_[k]; };
    const auto room = [&](Index k) { return std::max(active_.sign[k] * active_.multiplier[k], 0.0); };
    for (Index k = 0; k < active_.count; ++k)
        if (speed(k) > kSmallRate) reach = std::min(reach, (room(k) + kPriceSlack) / speed(k));
    if (reach == kInfinity) return -1;
    for (Index k = 0; k < active_.count; ++k) {
        if (!(speed(k) > steepest && room(k) / speed(k) <= reach)) continue;
        steepest = speed(k);
        length = room(k) / steepest;
        found = k;
    }
    return found;
}

bool GramNode::activate(const Entering& entering, double multiplier, double fall) {
    const Index k = active_.count;
    if (k >= n_) return false;
    active_.side[k] = entering.side;
    active_.sign[k] = entering.free ? 0.0 : entering.sign;
    active_.still[k] = entering.still;
    active_.multiplier[k] = multiplier;
    active_.line[k] = gram_.line(entering.side);
    active_.normal[k] = gram_.normal(entering.side);
    pressed_[entering.side] = 1;
    if (fall < kDelicate * gram_.square(entering.side)) delicate_ = true;
    if (k % kAbreast == 0)
        for (Index i = 0; i < k; ++i) Four::all(0.0).to(inverse_.data() + i * width_ + k);
    const double inverse = 1.0 / fall;
    double* last = inverse_.data() + k * width_;
    sums_.add_square(inverse_.data(), width_, k, inverse, rate_);
    for (Index j = k; j < in_fours(k + 1); ++j) last[j] = 0.0;
    for (Index i = 0; i < k; ++i) inverse_[i * width_ + k] = last[i] = -inverse * rate_[i];
    last[k] = inverse;
    ++active_.count;
    return true;
}

// Lets an active side go; the last one takes its place.
void GramNode::drop(Index k) {
    pressed_[active_.side[k]] = 0;
    const Index last = --active_.count;
    double *own = inverse_.data() + k * width_, *other = inverse_.data() + last * width_;
    active_.side[k] = active_.side[last];
    active_.sign[k] = active_.sign[last];
    active_.still[k] = active_.still[last];
    active_.multiplier[k] = active_.multiplier[last];
    active_.line[k] = active_.line[last];
    active_.normal[k] = active_.normal[last];
    for (Index j = 0; j <= last; ++j) std::swap(own[j], other[j]);
    for (Index i = 0; i <= last; ++i) std::swap(inverse_[i * width_ + k], inverse_[i * width_ + last]);
    const double pivot = 1.0 / other[last];
    for (Index i = 0; i < last; ++i) {
        double* line = inverse_.data() + i * width_;
        add(-line[last] * pivot, other, line, in_fours(last));
        line[last] = 0.0;
    }
}

void GramNode::find_x() {
    static constexpr double kZero[kGramColumns] = {};
    sums_.take_off(kZero, active_.multiplier, active_.normal, active_.count, x_.data(), n_);
}

}  // namespace gdpnet
