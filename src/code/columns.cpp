#include "code/columns.hpp"

#include <algorithm>
#include <cmath>

#include "base/index.hpp"
#include "code/columns_rules.hpp"

namespace saltus {

namespace columns {
// In code/columns_wide.cpp, which is compiled for machines that have the registers.
extern template void expand<Four>(const Diagonals& band, const Columns& columns, double* next);
extern template void evaluate<Four>(const Columns& columns, double tau, double* out);
extern template void find_clearance<Four>(const Columns& columns, double h, double* out);
extern template LastTerms judge_last<Four>(const Columns& columns, double reach, const double* least, double* scale);

namespace {
bool wide() { return has_four(); }
}  // namespace
}  // namespace columns

// ---- memory --------------------------------------------------------------------------------------------------------

void ColumnStore::begin(size_t terms) {
  terms_ = terms;
  chunks_.clear();
  unused_.clear();
  left_ = 0;
}

Columns ColumnStore::take(size_t count) {
  if (count == 0) return {.terms = terms_};
  const size_t size = Columns::size(count, terms_), kind = Columns::padded(count) / Columns::margin;
  if (kind >= unused_.size()) unused_.resize(kind + 1);
  double* begin = nullptr;
  if (!unused_[kind].empty()) {
    begin = unused_[kind].back();
    unused_[kind].pop_back();
  } else {
    if (size > left_) {
      left_ = std::max(size, chunk);
      chunks_.emplace_back(left_, 0.0);
    }
    begin = chunks_.back().data() + (chunks_.back().size() - left_);
    left_ -= size;
  }
  return {.first = begin + Columns::margin,
          .count = count,
          .stride = Columns::padded(count) + Columns::margin,
          .terms = terms_};
}

void ColumnStore::give_back(Columns& columns) {
  if (columns.first)
    unused_[Columns::padded(columns.count) / Columns::margin].push_back(columns.first - Columns::margin);
  columns = {};
}

// ---- series --------------------------------------------------------------------------------------------------------

void Band::begin(size_t states) {
  used_ = 0;
  diagonals = 0;
  count = states;
  padded = Columns::padded(states);
  constant.resize(padded);
  time.resize(padded);
  std::fill(constant.data() + count, constant.data() + padded, 0.0);
  std::fill(time.data() + count, time.data() + padded, 0.0);
  if (weights_.size() < at(most) * padded) weights_.resize(at(most) * padded);
}

void Band::begin_diagonal(int offset) {
  std::fill_n(weights_.data() + at(offset + reach) * padded, padded, 0.0);
  offsets[at(diagonals++)] = offset;
  used_ |= 1u << (offset + reach);
}

void expand(const Band& band, const Columns& columns, std::vector<double>& next) {
  next.resize(band.padded);
  columns::Diagonals plain{band.constant.data(), band.time.data(), {}, {}, at(band.diagonals)};
  for (size_t d = 0; d < plain.count; ++d) {
    plain.offsets[d] = band.offsets[d];
    plain.weights[d] = band.weights(band.offsets[d]);
  }
  if (columns::wide()) return columns::expand<columns::Four>(plain, columns, next.data());
  columns::expand<columns::Two>(plain, columns, next.data());
}

void evaluate(const Columns& columns, double tau, double* out) {
  if (columns::wide()) return columns::evaluate<columns::Four>(columns, tau, out);
  columns::evaluate<columns::Two>(columns, tau, out);
}

double evaluate(const ColumnSeries& column, size_t terms, double tau) {
  double sum = 0;
  for (size_t order = terms; order-- > 0;) sum = sum * tau + column[order];
  return sum;
}

void find_clearance(const Columns& columns, double h, double* out) {
  if (columns::wide()) return columns::find_clearance<columns::Four>(columns, h, out);
  columns::find_clearance<columns::Two>(columns, h, out);
}

double bound_rate(const ColumnSeries& column, size_t terms, double h) {
  double sum = 0;
  for (size_t order = terms - 1; order > 0; --order)
    sum = sum * h + static_cast<double>(order) * std::abs(column[order]);
  return sum;
}

LastTerms judge_last(const Columns& columns, double reach, const double* least, double* scale) {
  return columns::wide() ? columns::judge_last<columns::Four>(columns, reach, least, scale)
                         : columns::judge_last<columns::Two>(columns, reach, least, scale);
}

}  // namespace saltus
