#include "model/interactions.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <unordered_map>
#include <unordered_set>

namespace saltus {
namespace {

/// The parts of a rate in which switches may meet: products with switches in both factors, and nonlinear functions of
/// switches. Sums and constant factors around them only add, so rates with 1000 switches in a sum cost nothing.
std::vector<Expr> meeting_points(const Expr& rate) {
  std::unordered_set<const Node*> with_switch, reached{rate.node()};
  std::vector<Expr> nodes = postorder(std::span(&rate, 1));
  const auto has = [&](const Expr& e) { return with_switch.contains(e.node()); };
  for (const Expr& e : nodes) {
    bool any = e.is_symbol(SymbolKind::sigma);
    for (size_t k = 0; k < e.size(); ++k) any = any || has(e.argument(k));
    if (any) with_switch.insert(e.node());
  }
  std::vector<Expr> points;
  std::reverse(nodes.begin(), nodes.end());
  for (const Expr& e : nodes) {
    if (!reached.contains(e.node()) || !has(e)) continue;
    const bool passes = e.op() == Op::add || e.op() == Op::sub || e.op() == Op::neg ||
                        (e.op() == Op::mul && !(has(e.argument(0)) && has(e.argument(1)))) ||
                        (e.op() == Op::div && !has(e.argument(1)));
    if (!passes) points.push_back(e);
    for (size_t k = 0; passes && k < e.size(); ++k) reached.insert(e.argument(k).node());
  }
  return points;
}

/// SwitchPairs of switches that meet in a product or inside one nonlinear function of the rate.
SwitchPairs candidate_pairs(const Expr& rate) {
  std::unordered_map<const Node*, std::vector<int>> below;
  SwitchPairs pairs;
  const auto join = [&](const std::vector<int>& a, const std::vector<int>& b) {
    for (const int i : a) {
      for (const int j : b) {
        if (i != j) pairs.emplace(std::min(i, j), std::max(i, j));
      }
    }
  };
  for (const Expr& e : postorder(meeting_points(rate))) {
    std::vector<int> set;
    const auto part = [&](size_t k) -> const std::vector<int>& { return below.at(e.argument(k).node()); };
    if (e.is_symbol(SymbolKind::sigma)) set.push_back(e.symbol().index);
    for (size_t k = 0; k < e.size(); ++k) set.insert(set.end(), part(k).begin(), part(k).end());
    std::sort(set.begin(), set.end());
    set.erase(std::unique(set.begin(), set.end()), set.end());
    const bool linear =
        e.op() == Op::add || e.op() == Op::sub || e.op() == Op::neg || (e.op() == Op::div && part(1).empty());
    if (e.op() == Op::mul) {
      join(part(0), part(1));
    } else if (!linear) {
      join(set, set);
    }
    below.emplace(e.node(), std::move(set));
  }
  return pairs;
}

/// A rate as a flat list, to be evaluated often with two switches changed.
class FlatRate {
 public:
  FlatRate(const Expr& rate, const Probe& probe) : nodes_(postorder(std::span(&rate, 1))) {
    std::unordered_map<const Node*, size_t> at;
    for (const Expr& e : nodes_) {
      std::array<size_t, 3> from{};
      for (size_t k = 0; k < e.size(); ++k) from[k] = at.at(e.argument(k).node());
      arguments_.push_back(from);
      if (e.is_symbol(SymbolKind::sigma)) sigma_[e.symbol().index] = at.size();
      at.emplace(e.node(), at.size());
    }
    for (unsigned point = 1; point <= Probe::points; ++point) {
      std::vector<double> values(nodes_.size());
      for (size_t k = 0; k < nodes_.size(); ++k) {
        if (nodes_[k].size() != 0) continue;
        values[k] = probe(nodes_[k], point);
        if (nodes_[k].is_symbol(SymbolKind::sigma))
          values[k] *= 0.7;  // inside: no side of a third switch hides a product
      }
      points_.push_back(std::move(values));
      scales_.push_back(probe.scale(rate, point));
    }
  }

  size_t size() const { return nodes_.size(); }

  /// True if the second difference of the rate over both switches is not zero.
  bool interact(int i, int j) {
    bool known = false;
    for (size_t point = 0; point < points_.size(); ++point) {
      std::vector<double>& values = points_[point];
      const double old_i = values[sigma_.at(i)], old_j = values[sigma_.at(j)];
      const auto rate = [&](double si, double sj) {
        values[sigma_.at(i)] = si;
        values[sigma_.at(j)] = sj;
        return evaluate_at(values, scales_[point]);
      };
      const double pp = rate(1, 1), pm = rate(1, -1), mp = rate(-1, 1), mm = rate(-1, -1);
      values[sigma_.at(i)] = old_i;
      values[sigma_.at(j)] = old_j;
      const double difference = pp - pm - mp + mm;
      if (!std::isfinite(difference)) continue;
      known = true;
      if (std::abs(difference) > 1e-12 * (std::abs(pp) + std::abs(pm) + std::abs(mp) + std::abs(mm))) return true;
    }
    return !known;
  }

 private:
  double evaluate_at(std::vector<double>& values, double scale) const {
    std::array<double, 3> a{};
    for (size_t k = 0; k < nodes_.size(); ++k) {
      const size_t n = nodes_[k].size();
      if (n == 0) continue;
      for (size_t i = 0; i < n; ++i) a[i] = values[arguments_[k][i]];
      values[k] = apply_scaled(nodes_[k], a.data(), scale);
    }
    return values.back();
  }

  std::vector<Expr> nodes_;
  std::vector<std::array<size_t, 3>> arguments_;
  std::unordered_map<int, size_t> sigma_;
  std::vector<std::vector<double>> points_;
  std::vector<double> scales_;  // of exponents, at each point
};

}  // namespace

void find_interactions(Form& form, const Probe& probe, const SwitchPairs& disjoint) {
  SwitchPairs found;
  for (size_t k = 0; k < form.f.size(); ++k) {
    for (const Expr& s : symbols_in(std::span(&form.f[k], 1))) {
      if (s.is_symbol(SymbolKind::sigma))
        form.switches[static_cast<size_t>(s.symbol().index)].acts_on.push_back(static_cast<int>(k));
    }
    const SwitchPairs candidates = candidate_pairs(form.f[k]);
    if (candidates.empty()) continue;
    FlatRate rate(form.f[k], probe);
    const bool affordable = static_cast<double>(candidates.size()) * static_cast<double>(rate.size()) < 1e7;
    for (const auto& pair : candidates) {
      const auto hidden = [&](int i) { return form.switches[static_cast<size_t>(i)].hidden; };
      if (disjoint.contains(pair) || found.contains(pair) || hidden(pair.first) || hidden(pair.second)) continue;
      if (!affordable || rate.interact(pair.first, pair.second)) found.insert(pair);  // when in doubt, say so
    }
  }
  for (const auto& [i, j] : found) {
    form.switches[static_cast<size_t>(i)].interacts.push_back(j);
    form.switches[static_cast<size_t>(j)].interacts.push_back(i);
  }
  for (Switch& s : form.switches) std::sort(s.interacts.begin(), s.interacts.end());
}

}  // namespace saltus
