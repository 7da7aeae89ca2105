#include "gdpnet/gram_node.hpp"

#include "gdpnet/tolerances.hpp"

namespace gdpnet {

bool GramNode::suits(const Rows& rows) {
    const auto whole = [](std::uint8_t integer) { return integer != 0; };
    return rows.curves.none() && rows.outputs == rows.columns() && rows.columns() <= kGramColumns &&
           rows.count() <= kGramRows && std::none_of(rows.integer.begin(), rows.integer.end(), whole);
}

bool GramNode::suits(Vector<const double> yhat, Vector<const double> weights) {
    return std::all_of(yhat.begin(), yhat.end(), [](double at) { return std::abs(at) <= kLargePrediction; }) &&
           std::all_of(weights.begin(), weights.end(), [](double weight) { return weight > 0.0; });
}

GramNode::GramNode(Sample& sample)
    : rows_(sample.rows), sample_(sample), gram_(sample.rows), sums_(sums()), n_(gram_.n), m_(gram_.m), width_(gram_.width) {
    const auto n = std::size_t(n_), m = std::size_t(m_), n4 = std::size_t(width_), m4 = std::size_t(in_fours(m_));
    for (auto* values : {&yhat_, &weight_, &z_}) values->assign(n, 0.0);
    for (auto* values : {&at_, &x_}) values->assign(n4, 0.0);
    lower_.assign(n4, -kInfinity);
    upper_.assign(n4, kInfinity);
    for (auto* values : {&still_, &excess_, &magnitude_, &right_, &holds_}) values->assign(m4, 0.0);
    for (Index i = 0; i < m_; ++i)
        if (rows_.equality[i]) equalities_.push_back(i);
    enforced_.resize(2 * m);
    mark_.assign(2 * m, 0);
    pressed_.assign(m + n, 0);
    inverse_.assign(n * n4, 0.0);
    passed_.assign(2 * n, 0);
}

bool GramNode::begin(Vector<const double> yhat, Vector<const double> weights) {
    if (gram_.load(sample_, weights) || loaded_ != sample_.edition()) load_rows();
    double room = kInfinity;
    largest_ = 1.0;
    for (Index j = 0; j < n_; ++j) {
        yhat_[j] = yhat[j];
        weight_[j] = weights[j];
        at_[j] = weights[j] * yhat[j];
        largest_ = std::max(largest_, std::abs(yhat[j]));
        lower_[j] = weights[j] * (rows_.lower[j] - yhat[j]);
        upper_[j] = weights[j] * (rows_.upper[j] - yhat[j]);
        room = std::min(room, std::min(upper_[j], -lower_[j]));
    }
    room_ = room > 0.0 ? room * room : -1.0;
    gram_.excess(at_.data(), right_.data(), still_.data());
    while (enforced_count_ > 0) mark_[enforced_[--enforced_count_].code] = 0;
    restart();
    delicate_ = false;
    start_in_box();
    bool possible = true;
    for (Index i : rows_.global_rows) possible = possible && enforce(i);
    return possible;
}

// What depends on the rows alone.
void GramNode::load_rows() {
    for (Index i = 0; i < m_; ++i) {
        right_[i] = gram_.factor(i) * sample_.row[i].rhs;
        holds_[i] = gram_.factor(i) * sample_.row[i].tolerance;
    }
    loaded_ = sample_.edition();
}

// Bounds that the prediction breaks have nothing in common: they become active at once.
void GramNode::start_in_box() {
    if (room_ > 0.0) return;
    std::fill_n(rate_, kGramColumns, 0.0);
    for (Index j = 0; j < n_; ++j) {
        const double above = -upper_[j], below = lower_[j], over = std::max(above, below);
        if (!(over > 0.0)) continue;
        const double sign = above > below ? 1.0 : -1.0;
        move(gram_.line(m_ + j), sign * over);
        activate({m_ + j, sign, over, sign * over, -1, false}, sign * over, 1.0);
        bound_ += 0.5 * over * over;
    }
}

bool GramNode::enforce(Index code) {
    if (mark_[code] != 0) return true;
    const Index i = code < m_ ? code : code - m_;
    if (gram_.square(i) == 0.0) {
        return code >= m_ || (rows_.equality[i] ? std::abs(still_[i]) : still_[i]) <= holds_[i];
    }
    untouched_ = -1;
    mark_[code] = kEnforced;
    enforced_[enforced_count_++] = {code, i, code >= m_ ? -1.0 : rows_.equality[i] ? 0.0 : 1.0};
    return true;
}

void GramNode::restart() {
    untouched_ = -1;
    for (Index k = 0; k < active_.count; ++k) pressed_[active_.side[k]] = 0;
    active_.count = 0;
    bound_ = 0.0;
    copy_fours(still_.data(), excess_.data(), m_);
}

void GramNode::copy(const Active& from, Active& to) {
    const Index count = to.count = from.count;
    copy_fours(from.side, to.side, count);
    copy_fours(from.sign, to.sign, count);
    copy_fours(from.still, to.still, count);
    copy_fours(from.multiplier, to.multiplier, count);
    copy_fours(from.line, to.line, count);
    copy_fours(from.normal, to.normal, count);
}

void GramNode::copy_inverse(const std::vector<double>& from, std::vector<double>& to) const {
    for (Index k = 0; k < active_.count; ++k) copy_fours(from.data() + k * width_, to.data() + k * width_, active_.count);
}

void GramNode::save(Index level) {
    while (level >= Index(levels_.size())) {
        levels_.emplace_back();
        levels_.back().inverse.resize(inverse_.size());
        levels_.back().excess.resize(excess_.size());
    }
    Level& kept = levels_[level];
    copy(active_, kept.active);
    copy_inverse(inverse_, kept.inverse);
    copy_fours(excess_.data(), kept.excess.data(), m_);
    kept.enforced = enforced_count_;
    kept.bound = bound_;
    untouched_ = level;
}

void GramNode::restore(Index level) {
    if (untouched_ == level) return;
    const Level& kept = levels_[level];
    for (Index k = 0; k < active_.count; ++k) pressed_[active_.side[k]] = 0;
    while (enforced_count_ > kept.enforced) mark_[enforced_[--enforced_count_].code] = 0;
    copy(kept.active, active_);
    for (Index k = 0; k < active_.count; ++k) pressed_[active_.side[k]] = 1;
    copy_inverse(kept.inverse, inverse_);
    copy_fours(kept.excess.data(), excess_.data(), m_);
    bound_ = kept.bound;
    untouched_ = level;
}

// ---------------------------------------------------------------- the point

void GramNode::read_point(bool exactly) {
    if (exactly) return find_z();
    violation_ = excess_.data();
    if (equalities_.empty()) return;
    violation_ = magnitude_.data();
    copy_fours(excess_.data(), magnitude_.data(), m_);
    for (Index i : equalities_) magnitude_[i] = std::abs(magnitude_[i]);
}

void GramNode::find_z() {
    // What steps have left of the equations of what is active is put right.
    double left[kGramColumns] = {};
    find_x();
    for (Index k = 0; k < active_.count; ++k)
        left[k] = active_.still[k] + dot(gram_.normal(active_.side[k]), x_.data(), width_);
    multiply_inverse(left, rate_);
    for (Index k = 0; k < active_.count; ++k) active_.multiplier[k] += rate_[k];
    find_x();
    for (Index j = 0; j < n_; ++j)
        z_[j] = std::min(std::max(yhat_[j] + x_[j] / weight_[j], rows_.lower[j]), rows_.upper[j]) + 0.0;
    for (Index k = 0; k < active_.count; ++k) {  // what a bound holds is there exactly
        const Index side = active_.side[k];
        if (side >= m_) {
            z_[side - m_] = (active_.sign[k] > 0.0 ? rows_.upper : rows_.lower)[side - m_] + 0.0;
        } else if (const Sample::Row& row = sample_.row[side]; row.last - row.first == 1) {
            const auto [coefficient, j] = sample_.entry[row.first];
            z_[j] = std::min(std::max(row.rhs / coefficient, rows_.lower[j]), rows_.upper[j]) + 0.0;
        }
    }
    for (Index j = 0; j < n_; ++j) x_[j] = weight_[j] * (z_[j] - yhat_[j]);
}

double GramNode::value() const {
    double total = 0.0;
    for (Index j = 0; j < n_; ++j) {
        const double away = weight_[j] * (z_[j] - yhat_[j]);
        total += away * away;
    }
    return 0.5 * total;
}

bool GramNode::verify() const {
    for (Index e = 0; e < enforced_count_; ++e) {
        const auto [code, i, sign] = enforced_[e];
        const double over = still_[i] + dot(gram_.normal(i), x_.data(), width_);
        if (!((sign == 0.0 ? std::abs(over) : sign * over) <= 2.0 * holds_[i])) return false;
    }
    return true;
}

// ---------------------------------------------------------------- looking ahead

// Violated rows are added up, each as much as it is violated: what they ask for together is a row, too.
Gain GramNode::look_ahead(Vector<const Index> rows, double enough) const {
    Index listed[kTogether], count = 0;
    double share[kTogether], over = 0.0, most = 0.0;
    std::uint64_t columns = 0;
    for (Index i : rows) {
        const double violation = violation_[i];
        if (!(violation > 0.0)) continue;  // most are not
        const double square = gram_.square(i), allowed = forgiven(i);
        if (!(violation > allowed)) continue;
        if (square == 0.0 || gram_.least(i) - right_[i] > kDoubtful * allowed) return {kInfinity, 0, 0};
        if (count == kTogether) break;
        const double length = violation / square;
        over += violation * length;
        most = std::max(most, 0.5 * violation * length);
        columns |= gram_.columns(i);
        listed[count] = i;
        share[count++] = rows_.equality[i] && excess_[i] < 0.0 ? -length : length;
    }
    if (count == 0) return {};
    double square = share[0] * share[0] * gram_.square(listed[0]);
    if (count > 1) {
        Four squares = Four::all(0.0);
        for (Index j = 0; j < width_; j += kAbreast) {
            Four sum = Four::all(0.0);
            for (Index l = 0; l < count; ++l) sum = sum + Four::all(share[l]) * Four::at(gram_.normal(listed[l]) + j);
            squares = squares + sum * sum;
        }
        square = squares.sum();
        most = std::max(most, 0.5 * over * over / (square + kFallRounding * over));
    }
    if (most >= enough || enough == kInfinity || active_.count == 0) return {most, columns, columns};
    for (Index k = 0; k < active_.count; ++k) {
        const double* line = active_.line[k];
        double product = 0.0;
        for (Index l = 0; l < count; ++l) product += share[l] * line[listed[l]];
        products_[k] = product;
    }
    const double fall = std::max(find_rates(square), 0.0) + kFallRounding * square;
    double length = kInfinity;
    if (blocked(1.0, over / fall)) blocking(1.0, length);
    const double t = std::min(over / fall, length);
    const double gain = t * (over - 0.5 * t * fall);
    if (!(gain > most)) return {most, columns, columns};
    for (Index k = 0; k < active_.count; ++k)
        if (rate_[k] != 0.0) columns |= gram_.columns(active_.side[k]);
    return {gain, columns, columns};
}

}  // namespace gdpnet
