#include "code/linear_rows.hpp"

#include <algorithm>

#include "base/index.hpp"

namespace saltus {
namespace {

using Terms = std::vector<LinearRows::Term>;

/// sum += weight * terms
void add(Terms& sum, const Terms& terms, double weight) {
  for (const LinearRows::Term& t : terms) {
    const auto same = std::find_if(sum.begin(), sum.end(), [&](const auto& s) { return s.from == t.from; });
    if (same == sum.end()) {
      sum.push_back({t.from, weight * t.weight});
    } else {
      same->weight += weight * t.weight;
    }
  }
}

/// The weights of a and b in the result of an operation above order 0; false where it is no sum.
bool weights(const Operation& o, const double* series, double& a, double& b) {
  a = 1;
  b = 0;
  switch (o.instr) {
    case Instr::add: b = 1; return true;
    case Instr::sub: b = -1; return true;
    case Instr::add_c: return true;
    case Instr::neg:
    case Instr::rsub_c: a = -1; return true;
    case Instr::scale: a = series[o.b]; return true;
    case Instr::div_c: a = 1.0 / series[o.b]; return true;
    default: return false;
  }
}

}  // namespace

LinearRows linear_rows(std::span<const Operation> operations, std::span<const std::pair<int, int>> states,
                       std::span<const int> wanted, const std::vector<char>& varies, const double* series, int stride) {
  constexpr size_t longest = 64;
  const auto slot = [&](int place) { return at(place / stride); };
  std::vector<int> made(varies.size(), -1);  // per slot: the last operation that has made it
  std::vector<Terms> sums;
  const auto terms_of = [&](int place) {
    if (made[slot(place)] >= 0) return sums[at(made[slot(place)])];
    return varies[slot(place)] ? Terms{{place, 1.0}} : Terms{};
  };
  for (const Operation& o : operations) {
    double a = 0, b = 0;
    if (!weights(o, series, a, b)) return {};
    Terms sum;
    add(sum, terms_of(o.a), a);
    if (b != 0) add(sum, terms_of(o.b), b);
    std::erase_if(sum, [](const LinearRows::Term& t) { return t.weight == 0; });
    if (sum.size() > longest) return {};
    made[slot(o.out)] = static_cast<int>(sums.size());
    sums.push_back(std::move(sum));
  }
  LinearRows rows;
  const auto add_row = [&](int place, std::vector<LinearRows::Row>& to) {
    int& last = made[slot(place)];
    if (last < 0) return;
    const Terms& sum = sums[at(last)];
    rows.terms.insert(rows.terms.end(), sum.begin(), sum.end());
    to.push_back({place, rows.terms.size()});
    last = -1;
  };
  for (const auto& [state, rate] : states) add_row(rate, rows.rates);
  for (const int s : wanted) add_row(s * stride, rows.others);
  if (rows.terms.size() > 2 * operations.size()) return {};
  return rows;
}

void LinearRows::expand(std::span<const std::pair<int, int>> states, double* series, int first, int order) const {
  const Term* const all = terms.data();
  size_t from = 0;
  for (int k = first; k <= order; ++k) {
    const double factor = 1.0 / k;
    double* const now = series + k;
    for (const auto& [x, rate] : states) now[x] = (now - 1)[rate] * factor;
    from = 0;
    for (const Row& row : rates) {
      double sum = 0;
      for (; from < row.end; ++from) sum += all[from].weight * now[all[from].from];
      now[row.out] = sum;
    }
  }
  for (const Row& row : others) {
    double* const out = series + row.out;
    std::fill(out + first, out + order + 1, 0.0);
    for (; from < row.end; ++from) {
      const double* const in = series + all[from].from;
      for (int k = first; k <= order; ++k) out[k] += all[from].weight * in[k];
    }
  }
}

}  // namespace saltus
