#include "gdpnet/extended/pricing.hpp"

#include <algorithm>

namespace gdpnet::extended {

Pricing::Pricing(Index columns, Index rows, Index entries)
    : start_(columns + 2), row_(entries), coefficient_(entries), excess_(rows), rate_(rows), of_column_(columns),
      of_row_(rows) {}

void Pricing::begin(const Dictionary& dic, const SparseRows& rows) {
    const Index n = dic.n;
    // Entries are counted two places ahead, so that the starts are right when all have been written.
    std::fill_n(start_.data(), n + 2, Small(0));
    for (const Small i : dic.enforced) {
        for (Small e = rows.start[i]; e < rows.start[i + 1]; ++e) ++start_[rows.column[e] + 2];
    }
    for (Index j = 0; j < n; ++j) start_[j + 2] += start_[j + 1];
    for (const Small i : dic.enforced) {
        for (Small e = rows.start[i]; e < rows.start[i + 1]; ++e) {
            const Small at = start_[rows.column[e] + 1]++;
            row_[at] = i;
            coefficient_[at] = rows.coefficient[e];
        }
        rate_[i] = 0.0;
        of_row_[i] = 1.0;
    }
    std::fill_n(of_column_.data(), n, 1.0);
    recompute(dic, rows);
}

void Pricing::recompute(const Dictionary& dic, const SparseRows& rows) {
    for (const Small i : dic.enforced) excess_[i] = rows.excess(i, dic.value.data());
    fresh_ = true;
}

void Pricing::end_pivot(const Dictionary& dic, Small entering, double move) {
    for (const Small i : dic.enforced) {
        const double rate = rate_[i];
        excess_[i] += rate * move;
        of_row_[i] = std::max(of_row_[i], rate * rate * length_);
        rate_[i] = 0.0;
    }
    reference(entering) = std::max(length_, 1.0);
    fresh_ = false;
}

}  // namespace gdpnet::extended
