#include "gdpnet/extended/program.hpp"

#include <algorithm>
#include <cmath>

#include "gdpnet/tolerances.hpp"

namespace gdpnet::extended {

namespace {

// Of the bounds of a column: those that a row with one entry replaces, those that others imply, and those that
// imply others.
constexpr std::uint8_t kUpperImplied = 1, kLowerImplied = 2;
constexpr std::uint8_t kUpperLeftOut = 4, kLowerLeftOut = 8;
constexpr std::uint8_t kUpperNeeded = 16, kLowerNeeded = 32;

// Writes the rows of one block at the end of the program.
class Writer {
public:
    Writer(const Part& part, Workspace& work, Index block, Counts before)
        : part_(part), work_(work), rows_(work.lifted), span_(part.products(block)), row_(before.rows),
          at_(work.lifted.start[before.rows]), columns_(before.columns) {}

    Counts write() {
        const Index before = columns_;
        for (Index k = span_.begin; k < span_.end; ++k) {
            if (is(k, State::present)) {
                work_.first[std::size_t(k)] = Small(columns_);
                columns_ += part_.base() + 1;
            }
        }
        for (Index k = span_.begin; k < span_.end; ++k) {
            if (is(k, State::absent)) continue;
            write_rows(k);
            // A product by itself may rest on any of its bounds, and its basis names them.
            if (columns_ > before) leave_out(k);
            write_bounds(k);
            if (is(k, State::reference) && columns_ > before) write_signs(k);
        }
        return {columns_, row_};
    }

private:
    bool is(Index product, State state) const { return work_.state[std::size_t(product)] == state; }
    Index first(Index product) const { return work_.first[std::size_t(product)]; }

    void put(Index column, double coefficient) {
        rows_.column[at_] = Small(column);
        rows_.coefficient[at_] = coefficient;
        ++at_;
    }

    // Writes `a u_j` of a product.
    void put_copy(Index j, double a, Index product) {
        const Index d = part_.d;
        const double minus = j >= d ? a : -a;
        if (is(product, State::present)) {
            const Index f = first(product);
            if (j < d) put(f + j, a);
            put(f + d + j, minus);
            return;
        }
        if (j < d) put(j, a);
        put(d + j, minus);
        for (Index other = span_.begin; other < span_.end; ++other) {
            if (!is(other, State::present)) continue;
            const Index f = first(other);
            if (j < d) put(f + j, -a);
            put(f + d + j, -minus);
        }
    }

    // Writes `- weight slack` and the right side of a row.
    void close(Index product, double slack, double tolerance, bool equality, Small source) {
        const Index base = part_.base();
        double rhs = 0.0;
        if (is(product, State::present)) {
            put(first(product) + base, -slack);
        } else {
            rhs = slack;
            for (Index other = span_.begin; other < span_.end; ++other) {
                if (is(other, State::present)) put(first(other) + base, slack);
            }
        }
        end_row(product, rhs, tolerance, equality, source);
    }

    void end_row(Index product, double rhs, double tolerance, bool equality, Small source) {
        rows_.rhs[row_] = rhs;
        rows_.tolerance[row_] = tolerance;
        rows_.equality[row_] = equality;
        work_.owner[row_] = Small(product);
        work_.source[row_] = source;
        rows_.start[++row_] = Small(at_);
    }

    void write_rows(Index product) {
        std::fill(work_.implied.begin(), work_.implied.begin() + part_.n, std::uint8_t(0));
        for (Index i = 0; i < part_.globals; ++i) write_row(product, i);
        for (const Index i : part_.members(product)) write_row(product, i);
    }

    void write_row(Index product, Index i) {
        const SparseRows& local = work_.local;
        mark_implied(i);
        for (Index e = local.start[i]; e < local.start[i + 1]; ++e) {
            put_copy(local.column[e], local.coefficient[e], product);
        }
        close(product, local.rhs[i], local.tolerance[i], local.equality[i], Small(i));
    }

    // Marks a bound that a row with one entry makes redundant.
    void mark_implied(Index i) {
        const SparseRows& local = work_.local;
        const Index e = local.start[i];
        if (local.start[i + 1] != e + 1 || local.coefficient[e] == 0.0) return;
        const auto j = std::size_t(local.column[e]);
        const double bound = local.rhs[i] / local.coefficient[e];
        const bool both = local.equality[i];
        if ((both || local.coefficient[e] > 0.0) && bound < work_.high[j]) work_.implied[j] |= kUpperImplied;
        if ((both || local.coefficient[e] < 0.0) && bound > work_.low[j]) work_.implied[j] |= kLowerImplied;
    }

    // Leaves out bounds that a row with several entries implies, together with bounds that stay.
    void leave_out(Index product) {
        for (Index i = 0; i < part_.globals; ++i) leave_out_by(i);
        for (const Index i : part_.members(product)) leave_out_by(i);
    }

    void leave_out_by(Index i) {
        const SparseRows& local = work_.local;
        if (local.start[i + 1] < local.start[i] + 2) return;
        leave_out_by(i, 1.0);
        if (local.equality[i]) leave_out_by(i, -1.0);
    }

    // By `sign a z <= sign b`: where all other columns are on the bounds that make the left side least, what is
    // left for a column is a bound of it.
    void leave_out_by(Index i, double sign) {
        const SparseRows& local = work_.local;
        const Index begin = local.start[i], end = local.start[i + 1];
        double gap = sign * local.rhs[i];
        for (Index e = begin; e < end; ++e) {
            const double a = sign * local.coefficient[e];
            const auto j = std::size_t(local.column[e]);
            gap -= a * (a > 0.0 ? work_.low[j] : work_.high[j]);
            if (work_.implied[j] & (a > 0.0 ? kLowerLeftOut : kUpperLeftOut)) return;
        }
        if (!std::isfinite(gap)) return;
        bool used = false;
        for (Index e = begin; e < end; ++e) {
            const double a = sign * local.coefficient[e];
            const auto j = std::size_t(local.column[e]);
            const double low = work_.low[j], high = work_.high[j];
            if (a > 0.0 && !(work_.implied[j] & kUpperNeeded) && low + gap / a <= high + slack_of(high)) {
                work_.implied[j] |= kUpperLeftOut;
                used = true;
            } else if (a < 0.0 && !(work_.implied[j] & kLowerNeeded) && high + gap / a >= low - slack_of(low)) {
                work_.implied[j] |= kLowerLeftOut;
                used = true;
            }
        }
        for (Index e = begin; e < end && used; ++e) {
            const bool lower = sign * local.coefficient[e] > 0.0;
            work_.implied[std::size_t(local.column[e])] |= lower ? kLowerNeeded : kUpperNeeded;
        }
    }

    static double slack_of(double bound) { return kImplied * std::max(1.0, std::abs(bound)); }

    void write_bounds(Index product) {
        for (Index j = 0; j < part_.n; ++j) {
            const auto k = std::size_t(j);
            if (!(work_.implied[k] & (kUpperImplied | kUpperLeftOut))) write_bound(product, j, 1.0, work_.high[k]);
            if (!(work_.implied[k] & (kLowerImplied | kLowerLeftOut)) && j < part_.d) {
                write_bound(product, j, -1.0, -work_.low[k]);
            }
        }
    }

    void write_bound(Index product, Index j, double sign, double bound) {
        put_copy(j, sign, product);
        close(product, bound, kFeasibility * std::max(1.0, bound), false, bound_source(part_.n, j, sign > 0.0));
    }

    // What the other products leave to the reference is not negative.
    void write_signs(Index product) {
        const Index base = part_.base();
        for (Index c = 0; c <= base; ++c) {
            if (c < base) put(c, -1.0);
            for (Index other = span_.begin; other < span_.end; ++other) {
                if (is(other, State::present)) put(first(other) + c, 1.0);
            }
            end_row(product, c == base ? 1.0 : 0.0, kFeasibility, false, sign_source(part_.n));
        }
    }

    const Part& part_;
    Workspace& work_;
    SparseRows& rows_;
    Span span_;
    Index row_;
    Index at_;
    Index columns_;
};

}  // namespace

Part::Part(const Sources& sources, const Tables& tables, Index number, Index offset)
    : tables(tables), number(number), n(0), d(0), offset(offset), globals(tables.part_global[std::size_t(number)]),
      blocks(tables.part_block[std::size_t(number) + 1] - tables.part_block[std::size_t(number)]) {
    n = tables.part_column[std::size_t(number) + 1] - tables.part_column[std::size_t(number)];
    for (Index k = 0; k < n; ++k) d += column(k) < sources.outputs;
}

Workspace::Workspace(const Sources& sources, const Extent& extent)
    : local(extent.rows, extent.entries), scale(std::size_t(extent.rows), 1.0), size(std::size_t(extent.rows), 1.0),
      place(sources.lower.size()), low(place.size()), high(place.size()), shift(place.size()),
      weights(2 * place.size()), point(place.size()), zero(2 * place.size(), 0.0),
      implied(place.size()), lifted(extent.rows, extent.entries),
      owner(extent.rows), source(extent.rows), first(std::size_t(extent.products)), state(std::size_t(extent.products)),
      price(std::size_t(extent.products), 0.0),      nearest(std::size_t(extent.blocks)), rank(std::size_t(extent.blocks)), least(std::size_t(extent.blocks)),
      distance(std::size_t(extent.blocks)),
      points(extent.blocks, Index(place.size())), simplex(extent.columns, extent.rows, extent.entries) {}

void load_part(const Sources& sources, const Part& part, const Sample& sample, Workspace& work) {
    for (Index k = 0; k < part.n; ++k) {
        const auto j = std::size_t(part.column(k)), c = std::size_t(k);
        work.place[j] = Small(k);
        if (k < part.d) {
            work.shift[c] = sample.start[j];
            work.weights[c] = sample.weights[j];
            work.weights[std::size_t(part.d + k)] = sample.weights[j];
        } else {
            work.shift[c] = sources.lower[j];
        }
        work.low[c] = sources.lower[j] - work.shift[c];
        work.high[c] = sources.upper[j] - work.shift[c];
    }
    SparseRows& rows = work.local;
    Index at = 0;
    for (Index r = 0; r < part.rows(); ++r) {
        const auto i = std::size_t(part.row(r));
        const Index v = sources.varying[i];
        double factor = sources.scale[i];
        if (v >= 0) {
            double largest = 0.0;
            for (Index e = sources.start[i]; e < sources.start[i + 1]; ++e) {
                largest = std::max(largest, std::abs(sample.varying(v, sources.column[std::size_t(e)])));
            }
            if (largest > 0.0) factor = std::ldexp(1.0, -std::ilogb(largest));
        }
        double slack = sample.bound[i] * factor;
        double size = std::max(factor, std::abs(slack));
        rows.tolerance[r] = kFeasibility * std::max(1.0, std::abs(slack));
        for (Index e = sources.start[i]; e < sources.start[i + 1]; ++e) {
            const auto j = std::size_t(sources.column[std::size_t(e)]);
            const double a = v >= 0 ? sample.varying(v, Index(j)) * factor : sources.coefficient[std::size_t(e)];
            rows.column[at] = work.place[j];
            rows.coefficient[at] = a;
            ++at;
            size = std::max(size, std::abs(a));
            slack -= a * work.shift[std::size_t(work.place[j])];
        }
        work.size[std::size_t(r)] = size;
        work.scale[std::size_t(r)] = factor;
        rows.rhs[r] = slack;
        rows.equality[r] = sources.equality[i];
        rows.start[r + 1] = Small(at);
    }
}

Counts write_block(const Part& part, Workspace& work, Index block, Counts before) {
    return Writer(part, work, block, before).write();
}

Counts write_program(const Part& part, Workspace& work) {
    Counts counts{part.base(), 0};
    for (Index rank = 1; rank <= part.blocks; ++rank) {
        for (Index b = 0; b < part.blocks; ++b) {
            if (work.rank[std::size_t(b)] == rank) counts = write_block(part, work, b, counts);
        }
    }
    return counts;
}

}  // namespace gdpnet::extended
