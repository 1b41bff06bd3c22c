#include "model/mass_matrix.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <queue>
#include <set>

#include "base/index.hpp"
#include "model/thresholds.hpp"

namespace saltus {
namespace {

constexpr double infinite = std::numeric_limits<double>::infinity();

/// Shortest augmenting paths with costs log(largest of the row / entry) and potentials that keep them nonnegative.
class Matching {
 public:
  Matching(const NumberRows& rows, int columns)
      : rows_(rows), row_of_(at(columns), -1), column_of_(rows.size(), -1), potential_(at(columns), 0) {
    costs_.resize(rows.size());
    for (size_t i = 0; i < rows.size(); ++i) {
      double largest = 0;
      for (const auto& [j, v] : rows[i]) largest = std::max(largest, std::abs(v));
      for (const auto& [j, v] : rows[i]) {
        if (std::abs(v) > 0 && std::isfinite(v)) costs_[i].emplace_back(j, std::log(largest / std::abs(v)));
      }
    }
  }

  std::vector<int> run() {
    for (size_t i = 0; i < rows_.size(); ++i) {
      const int own = static_cast<int>(i);  // most matrices have their largest entries on the diagonal
      for (const auto& [j, cost] : costs_[i]) {
        if (j == own && cost == 0 && row_of_[i] < 0) assign(own, j);
      }
    }
    for (size_t i = 0; i < rows_.size(); ++i) {
      if (column_of_[i] < 0) augment(static_cast<int>(i));
    }
    return row_of_;
  }

 private:
  void assign(int row, int column) {
    row_of_[at(column)] = row;
    column_of_[at(row)] = column;
  }

  /// The reduced cost of an entry; `start` is that of the matched entry of its row, or 0.
  double row_potential(int row) const {
    const int column = column_of_[at(row)];
    if (column < 0) return 0;
    for (const auto& [j, cost] : costs_[at(row)]) {
      if (j == column) return cost - potential_[at(column)];
    }
    return 0;
  }

  void augment(int root) {
    std::map<int, double> distance;
    std::map<int, int> from;  // the row through which a column is reached
    std::set<int> finished;
    using Entry = std::pair<double, int>;
    std::priority_queue<Entry, std::vector<Entry>, std::greater<>> open;
    const auto relax = [&](int row, double base) {
      const double own = row_potential(row);
      for (const auto& [j, cost] : costs_[at(row)]) {
        const double d = base + std::max(0.0, cost - potential_[at(j)] - own);
        const auto known = distance.find(j);
        if (finished.contains(j) || (known != distance.end() && known->second <= d)) continue;
        distance[j] = d;
        from[j] = row;
        open.emplace(d, j);
      }
    };
    // The potential of the free root row: the least reduced cost of its entries.
    double least = infinite;
    for (const auto& [j, cost] : costs_[at(root)]) least = std::min(least, cost - potential_[at(j)]);
    if (least == infinite) return;
    for (const auto& [j, cost] : costs_[at(root)]) {
      distance[j] = cost - potential_[at(j)] - least;
      from[j] = root;
      open.emplace(distance[j], j);
    }
    int end = -1;
    double length = 0;
    while (!open.empty()) {
      const auto [d, j] = open.top();
      open.pop();
      if (!finished.insert(j).second) continue;
      if (row_of_[at(j)] < 0) {
        end = j;
        length = d;
        break;
      }
      relax(row_of_[at(j)], d);
    }
    if (end < 0) return;
    for (const int j : finished) potential_[at(j)] += distance[j] - length;
    for (int j = end; j >= 0;) {
      const int row = from.at(j), next = column_of_[at(row)];
      assign(row, j);
      j = row == root ? -1 : next;
    }
  }

  const NumberRows& rows_;
  std::vector<std::vector<std::pair<int, double>>> costs_;
  std::vector<int> row_of_, column_of_;
  std::vector<double> potential_;
};

}  // namespace

std::vector<double> symmetric_scaling(const Block& b) {
  std::vector<double> scale(at(b.n), 0);
  for (int root = 0; root < b.n; ++root) {
    if (scale[at(root)] != 0) continue;
    scale[at(root)] = b(root, root) > 0 ? 1 : -1;
    std::vector<int> pending{root};
    while (!pending.empty()) {
      const int i = pending.back();
      pending.pop_back();
      for (int j = 0; j < b.n; ++j) {
        if ((b(i, j) == 0) != (b(j, i) == 0)) return {};
        if (j == i || b(i, j) == 0) continue;
        const double wanted = scale[at(i)] * b(i, j) / b(j, i);
        if (scale[at(j)] == 0) {
          scale[at(j)] = wanted;
          pending.push_back(j);
        } else if (std::abs(scale[at(j)] - wanted) > equal_coefficients * std::abs(wanted)) {
          return {};
        }
      }
    }
  }
  return scale;
}

std::vector<int> match_rows(const NumberRows& rows, int columns) { return Matching(rows, columns).run(); }

std::vector<std::vector<int>> triangular_blocks(const FormulaRows& rows, const std::vector<int>& row_of) {
  // Tarjan's algorithm without recursion: a component is complete after those it needs.
  const size_t n = row_of.size();
  std::vector<int> number(n, -1), low(n, 0);
  std::vector<bool> waiting(n, false);
  std::vector<int> stack;
  std::vector<std::vector<int>> blocks;
  struct Frame {
    int column;
    std::map<int, Expr>::const_iterator next;
  };
  std::vector<Frame> frames;
  int count = 0;
  const auto enter = [&](int c) {
    number[at(c)] = low[at(c)] = count++;
    stack.push_back(c);
    waiting[at(c)] = true;
    frames.push_back({c, rows[at(row_of[at(c)])].begin()});
  };
  for (size_t root = 0; root < n; ++root) {
    if (number[root] >= 0) continue;
    enter(static_cast<int>(root));
    while (!frames.empty()) {
      Frame& top = frames.back();
      const int c = top.column;
      if (top.next != rows[at(row_of[at(c)])].end()) {
        const int d = (top.next++)->first;
        if (number[at(d)] < 0) {
          enter(d);
        } else if (waiting[at(d)]) {
          low[at(c)] = std::min(low[at(c)], number[at(d)]);
        }
        continue;
      }
      frames.pop_back();
      if (!frames.empty()) low[at(frames.back().column)] = std::min(low[at(frames.back().column)], low[at(c)]);
      if (low[at(c)] != number[at(c)]) continue;
      std::vector<int> block;
      while (block.empty() || block.back() != c) {
        block.push_back(stack.back());
        waiting[at(stack.back())] = false;
        stack.pop_back();
      }
      std::sort(block.begin(), block.end());
      blocks.push_back(std::move(block));
    }
  }
  return blocks;
}

bool scales_to_positive(const Block& block) {
  const std::vector<double> scale = symmetric_scaling(block);
  if (scale.empty()) return false;
  Block a = block;
  for (int i = 0; i < a.n; ++i) {
    for (int j = 0; j < a.n; ++j) a(i, j) *= scale[at(i)];
  }
  for (int k = 0; k < a.n; ++k) {
    if (!(a(k, k) > singular_share * std::abs(scale[at(k)] * block(k, k)))) return false;
    for (int i = k + 1; i < a.n; ++i) {
      const double factor = a(i, k) / a(k, k);
      if (factor == 0) continue;
      for (int j = k + 1; j < a.n; ++j) a(i, j) -= factor * a(k, j);
    }
  }
  return true;
}

bool is_symmetric(const Block& block) {
  for (int i = 0; i < block.n; ++i) {
    for (int j = 0; j < i; ++j) {
      if (std::abs(block(i, j) - block(j, i)) > equal_coefficients * std::abs(block(i, j))) return false;
    }
  }
  return true;
}

std::vector<double> null_vector(Block a) {
  // Rows of equal size, then Gauss and Jordan with complete pivoting: what is left without a pivot is free.
  const int n = a.n;
  for (int i = 0; i < n; ++i) {
    double largest = 0;
    for (int j = 0; j < n; ++j) largest = std::max(largest, std::abs(a(i, j)));
    for (int j = 0; j < n && largest > 0; ++j) a(i, j) /= largest;
  }
  std::vector<int> column(at(n));
  std::iota(column.begin(), column.end(), 0);
  for (int k = 0; k < n; ++k) {
    int row = k, best = k;
    for (int i = k; i < n; ++i) {
      for (int j = k; j < n; ++j) {
        if (std::abs(a(i, j)) > std::abs(a(row, best))) row = i, best = j;
      }
    }
    if (!(std::abs(a(row, best)) > singular_share)) {
      std::vector<double> x(at(n), 0);
      x[at(column[at(k)])] = 1;
      for (int i = 0; i < k; ++i) x[at(column[at(i)])] = std::abs(a(i, k)) > equal_coefficients ? -a(i, k) : 0;
      return x;
    }
    for (int j = 0; j < n; ++j) std::swap(a(k, j), a(row, j));
    for (int i = 0; i < n; ++i) std::swap(a(i, k), a(i, best));
    std::swap(column[at(k)], column[at(best)]);
    const double pivot = a(k, k);
    for (int j = 0; j < n; ++j) a(k, j) /= pivot;
    for (int i = 0; i < n; ++i) {
      const double factor = a(i, k);
      if (i == k || factor == 0) continue;
      for (int j = 0; j < n; ++j) a(i, j) -= factor * a(k, j);
    }
  }
  return {};
}

std::vector<int> pivot_rows(Block a) {
  std::vector<int> rows(at(a.n));
  std::iota(rows.begin(), rows.end(), 0);
  for (int k = 0; k < a.n; ++k) {
    int best = k;
    for (int i = k + 1; i < a.n; ++i) {
      if (std::abs(a(i, k)) > std::abs(a(best, k))) best = i;
    }
    for (int j = 0; j < a.n; ++j) std::swap(a(k, j), a(best, j));
    std::swap(rows[at(k)], rows[at(best)]);
    for (int i = k + 1; i < a.n && a(k, k) != 0; ++i) {
      const double factor = a(i, k) / a(k, k);
      for (int j = k; j < a.n; ++j) a(i, j) -= factor * a(k, j);
    }
  }
  return rows;
}

std::vector<int> least_degree_order(const std::vector<std::vector<int>>& neighbours) {
  std::vector<std::set<int>> graph;
  for (const auto& n : neighbours) graph.emplace_back(n.begin(), n.end());
  std::set<std::pair<size_t, int>> open;
  for (size_t i = 0; i < graph.size(); ++i) open.emplace(graph[i].size(), static_cast<int>(i));
  std::vector<int> order;
  while (!open.empty()) {
    const int next = open.begin()->second;
    open.erase(open.begin());
    order.push_back(next);
    const std::set<int> around = std::move(graph[at(next)]);
    for (const int i : around) {
      open.erase({graph[at(i)].size(), i});
      graph[at(i)].erase(next);
      for (const int j : around) {
        if (j != i) graph[at(i)].insert(j);
      }
      open.emplace(graph[at(i)].size(), i);
    }
  }
  return order;
}

std::vector<Expr> eliminate(FormulaRows rows, std::vector<Expr> right, std::span<const std::pair<int, int>> pivots,
                            bool symmetric, std::vector<Expr>& divisors) {
  const size_t n = pivots.size();
  std::vector<int> place_of_row(n), row_of_column(n);
  std::vector<std::set<int>> rows_with(n);  // by column
  for (size_t k = 0; k < n; ++k) {
    place_of_row[at(pivots[k].first)] = static_cast<int>(k);
    row_of_column[at(pivots[k].second)] = pivots[k].first;
  }
  for (size_t i = 0; i < n; ++i) {
    for (const auto& [j, e] : rows[i]) rows_with[at(j)].insert(static_cast<int>(i));
  }
  const auto place_of_column = [&](int j) { return place_of_row[at(row_of_column[at(j)])]; };
  const auto add = [&](int i, int j, const Expr& less) {
    const auto [entry, fresh] = rows[at(i)].try_emplace(j, -less);
    if (!fresh) entry->second = entry->second - less;
    rows_with[at(j)].insert(i);
  };
  for (size_t k = 0; k < n; ++k) {
    const auto [pivot_row, pivot_column] = pivots[k];
    const Expr pivot = rows[at(pivot_row)].at(pivot_column);
    divisors.push_back(pivot);
    for (const int i : rows_with[at(pivot_column)]) {
      if (place_of_row[at(i)] <= static_cast<int>(k)) continue;
      const Expr factor = rows[at(i)].at(pivot_column) / pivot;
      for (const auto& [j, e] : rows[at(pivot_row)]) {
        const int place = place_of_column(j);
        if (place <= static_cast<int>(k) || (symmetric && place > place_of_row[at(i)])) continue;
        add(i, j, factor * e);
        const int mirrored = row_of_column[at(j)];
        if (symmetric && mirrored != i) {
          const int own = pivots[at(place_of_row[at(i)])].second;
          rows[at(mirrored)].insert_or_assign(own, rows[at(i)].at(j));
          rows_with[at(own)].insert(mirrored);
        }
      }
      right[at(i)] = right[at(i)] - factor * right[at(pivot_row)];
    }
  }
  std::vector<Expr> x(n);
  for (size_t k = n; k-- > 0;) {
    const auto [row, column] = pivots[k];
    Expr sum = right[at(row)];
    for (const auto& [j, e] : rows[at(row)]) {
      if (place_of_column(j) > static_cast<int>(k)) sum = sum - e * x[at(j)];
    }
    x[at(column)] = sum / rows[at(row)].at(column);
  }
  return x;
}

std::vector<Expr> solve_by_cofactors(const FormulaRows& rows, const std::vector<Expr>& right,
                                     std::vector<Expr>& divisors) {
  const int n = static_cast<int>(rows.size());
  const auto entry = [&](int i, int j) {
    const auto found = rows[at(i)].find(j);
    return found == rows[at(i)].end() ? Expr(0.0) : found->second;
  };
  // The cofactor of (i, j): of cyclically numbered others, so that it has its sign already.
  const auto cofactor = [&](int i, int j) {
    if (n == 1) return Expr(1.0);
    if (n == 2) return (i + j) % 2 == 0 ? entry(1 - i, 1 - j) : -entry(1 - i, 1 - j);
    const int a = (i + 1) % 3, b = (i + 2) % 3, c = (j + 1) % 3, d = (j + 2) % 3;
    return entry(a, c) * entry(b, d) - entry(a, d) * entry(b, c);
  };
  Expr determinant = 0.0;
  for (int j = 0; j < n; ++j) determinant = determinant + entry(0, j) * cofactor(0, j);
  divisors.push_back(determinant);
  std::vector<Expr> x;
  for (int j = 0; j < n; ++j) {
    Expr sum = 0.0;
    for (int i = 0; i < n; ++i) sum = sum + cofactor(i, j) * right[at(i)];
    x.push_back(sum / determinant);
  }
  return x;
}

}  // namespace saltus
