// The cuts that a search has learned about the curved rows of its sample.
//
// A cut says something about its row alone, so it holds at every node where that row is enforced. Each row has room
// for some; where it is used up, the oldest that nobody holds is written over. Nodes that are kept aside and hold it
// find that out by its stamp.
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#include "gdpnet/curves.hpp"

namespace gdpnet {

class Cuts {
public:
    explicit Cuts(const Rows& rows)
        : curved(rows), first_(rows.curves.first_cut), stamp_(std::size_t(rows.count() - rows.given())), rows_(rows) {
        for (Index c = 0; c < rows.curves.count(); ++c)
            owner_.insert(owner_.end(), std::size_t(first_[c + 1] - first_[c]), c);
        filled_.assign(std::size_t(rows.curves.count()), 0);
        coefficient_.assign(rows.lower.size(), 0.0);
    }

    CurvedRows curved;

    // Forgets all of them.
    void begin() {
        std::fill(filled_.begin(), filled_.end(), 0);
        now_ = 0;
    }

    bool is_cut(Index i) const { return i >= rows_.given(); }

    // The curved row that a cut is about, by its place.
    Index owner(Index i) const { return owner_[i - rows_.given()]; }

    // Cuts of curved row c: rows `first` to `last`.
    Index first(Index c) const { return first_[c]; }
    Index last(Index c) const { return first_[c] + filled_[c]; }

    long now() const { return now_; }
    bool written_since(Index i, long then) const { return stamp_[i - rows_.given()] > then; }

    // Memory for a row, (n,), to be left as zeros.
    std::vector<double>& scratch() { return coefficient_; }

    // Writes a cut of row c at z into the sample, over one that is not `held`. Returns its row; -1 if all are held.
    template <class Held>
    Index add(Sample& sample, Index c, const double* z, Held held) {
        Index i = -1;
        if (last(c) < first_[c + 1]) {
            i = first_[c] + filled_[c]++;
        } else {
            for (Index k = first_[c]; k < first_[c + 1]; ++k)
                if (!held(k) && (i < 0 || stamp_[k - rows_.given()] < stamp_[i - rows_.given()])) i = k;
            if (i < 0) return -1;
        }
        stamp_[i - rows_.given()] = ++now_;
        write(sample, i, curved.cut(sample, c, z, coefficient_));
        return i;
    }

private:
    void write(Sample& sample, Index i, double right) {
        Sample::Row& row = sample.row[i];
        double largest = 0.0;
        for (Slot e = row.first; e < row.last; ++e) largest = std::max(largest, std::abs(coefficient_[sample.entry[e].column]));
        const double factor = std::isfinite(largest) ? scale_of(largest) : 1.0;
        for (Slot e = row.first; e < row.last; ++e) {
            double& from = coefficient_[sample.entry[e].column];
            sample.entry[e].coefficient = from * factor;
            from = 0.0;  // of a column that stands twice in a row, the second entry is empty
        }
        row.rhs = right * factor;
        row.tolerance = kFeasibility * std::max(1.0, std::abs(row.rhs));
    }

    const std::vector<Index>& first_;
    std::vector<long> stamp_;          // by cut: when it was written
    std::vector<Index> owner_;         // by cut
    std::vector<Index> filled_;        // by curved row
    std::vector<double> coefficient_;  // (n,): scratch
    const Rows& rows_;
    long now_ = 0;
};

// Which curved rows are enforced at a node, by place, in the order in which they were.
class Bends {
public:
    // A node that is kept aside.
    struct Mark {
        Index count = 0;
        long then = 0;
    };

    explicit Bends(const Rows& rows) : row_(rows.curves.row.size()), is_(rows.curves.row.size(), 0) {}

    // False if it is there already.
    bool add(Index c) {
        if (is_[c]) return false;
        is_[c] = 1;
        row_[count_++] = c;
        return true;
    }
    void back_to(Index count) {
        while (count_ > count) is_[row_[--count_]] = 0;
    }
    Index count() const { return count_; }
    const Index* begin() const { return row_.data(); }
    const Index* end() const { return row_.data() + count_; }

private:
    std::vector<Index> row_;
    Flags is_;
    Index count_ = 0;
};

}  // namespace gdpnet
