#include "flow/band_slope.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "base/index.hpp"
#include "flow/thresholds.hpp"
#include "solve/narrow_order.hpp"

namespace saltus {
namespace {

constexpr int widest_slope = 32;  // beyond this from its diagonal a slope is inverted like a small one

}  // namespace

std::optional<BandSlope> BandSlope::make(int size, std::span<const std::pair<int, int>> entries) {
  std::vector<std::vector<int>> near(at(size));
  for (const auto& [row, column] : entries) {
    if (row == column) continue;
    near[at(row)].push_back(column);
    near[at(column)].push_back(row);
  }
  for (std::vector<int>& list : near) {
    std::sort(list.begin(), list.end());
    list.erase(std::unique(list.begin(), list.end()), list.end());
  }
  NarrowOrder narrow = narrow_order(near);
  if (narrow.band > widest_slope) return std::nullopt;
  BandSlope out;
  out.position_ = std::move(narrow.position);
  for (const auto& [row, column] : entries)
    out.entries_.emplace_back(out.position_[at(row)], out.position_[at(column)]);
  return out;
}

bool BandSlope::factor(std::span<const double> values) {
  const int n = static_cast<int>(position_.size());
  std::vector<SparseEntry> entries;
  for (size_t e = 0; e < entries_.size(); ++e) entries.push_back({entries_[e].first, entries_[e].second, values[e]});
  slope_ = SparseMat(n, n, entries);
  if (!slope_.allFinite()) return false;
  scale_ = Vec::Zero(n);
  for (int j = 0; j < n; ++j) {
    for (const auto [row, value] : slope_.column(j)) scale_[row] = std::max(scale_[row], std::abs(value));
  }
  for (int i = 0; i < n; ++i) scale_[i] = scale_[i] > 0 ? 1 / scale_[i] : 1;
  const SparseMat scaled = scale_.asDiagonal() * slope_;
  return factor_.take(scaled, widest_slope) && factor_.factor(std::vector<char>(at(n), 1)) && is_regular(scaled);
}

/// The growth of an arbitrary right side bounds the inverse from below, and nearly always closely.
bool BandSlope::is_regular(const SparseMat& scaled) {
  const int n = static_cast<int>(position_.size());
  ordered_.resize(n);
  uint32_t bits = 1;
  for (int i = 0; i < n; ++i) {
    bits = bits * 1664525u + 1013904223u;
    ordered_[i] = bits >> 31 ? 1.0 : -1.0;
  }
  factor_.solve_in_place(ordered_);
  Vec rows = Vec::Zero(n);
  for (int j = 0; j < n; ++j) {
    for (const auto [row, value] : scaled.column(j)) rows[row] += std::abs(value);
  }
  return rows.maxCoeff() * ordered_.max_abs() * singular_rcond < 1;
}

void BandSlope::solve(const Vec& b, Vec& x) {
  const int n = static_cast<int>(position_.size());
  ordered_.resize(n);
  x.resize(n);
  for (int i = 0; i < n; ++i) ordered_[position_[at(i)]] = scale_[position_[at(i)]] * b[i];
  factor_.solve_in_place(ordered_);
  for (int i = 0; i < n; ++i) x[i] = ordered_[position_[at(i)]];
}

void BandSlope::absolute_product(const Vec& weight, Vec& out) const {
  const int n = static_cast<int>(position_.size());
  Vec sums = Vec::Zero(n), weights(n);
  for (int i = 0; i < n; ++i) weights[position_[at(i)]] = weight[i];
  for (int j = 0; j < n; ++j) {
    for (const auto [row, value] : slope_.column(j)) sums[row] += std::abs(value) * weights[j];
  }
  out.resize(n);
  for (int i = 0; i < n; ++i) out[i] = sums[position_[at(i)]];
}

Mat BandSlope::inverse() {
  const int n = static_cast<int>(position_.size());
  Mat out(n, n);
  Vec unit(n), column;
  for (int j = 0; j < n; ++j) {
    unit.setZero();
    unit[j] = 1;
    solve(unit, column);
    out.col(j) = column;
  }
  return out;
}

}  // namespace saltus
