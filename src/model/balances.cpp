#include "model/balances.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <random>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/index.hpp"
#include "expr/diff.hpp"
#include "model/mass_matrix.hpp"
#include "model/thresholds.hpp"

namespace saltus {
namespace {

constexpr unsigned probed_points = 4;  ///< at which coefficients are looked at: none of them is special

/// The values of many formulas at a point near the start; what they share is worked out once.
class NearStart {
 public:
  /// `other_parameters`: also those that the file gives as 0 are not.
  NearStart(const Model& model, const Form& form, unsigned point, bool other_parameters)
      : form_(form), parameters_(parameter_values(model)), random_(point) {
    std::uniform_real_distribution<double> share(0.7, 1.3);
    if (other_parameters) {
      for (double& p : parameters_) p = (p == 0 ? 1 : p) * share(random_);
    }
    std::normal_distribution<double> normal;
    for (const State& s : model.states) {
      double x = constant_value(s.initial, parameters_);
      if (!std::isfinite(x)) x = 0;
      states_.push_back(x + 0.2 * std::max(1.0, std::abs(x)) * normal(random_));
    }
    time_ = share(random_);
    sigma_.assign(form.switches.size(), 1);
    counters_.assign(static_cast<size_t>(form.counter_values), 0);
    for (const Counter& c : form.counters) {
      set_counter(c, count_at(c, evaluate(c.phase, [this](const Symbol& s) { return value(s); })), counters_);
      sigma_[static_cast<size_t>(c.above)] = -1;
    }
  }

  std::vector<double> operator()(std::span<const Expr> roots) const {
    std::unordered_map<const Node*, double> done;
    std::array<double, 3> a{};
    for (const Expr& e : postorder(roots)) {
      for (size_t i = 0; i < e.size(); ++i) a[i] = done.at(e.argument(i).node());
      const double v = e.size() == 0 ? evaluate(e, [this](const Symbol& s) { return value(s); }) : apply(e, a.data());
      done.emplace(e.node(), v);
    }
    std::vector<double> values;
    for (const Expr& e : roots) values.push_back(done.at(e.node()));
    return values;
  }

 private:
  double value(const Symbol& s) const {
    const size_t i = static_cast<size_t>(s.index);
    switch (s.kind) {
      case SymbolKind::state: return states_[i];
      case SymbolKind::parameter: return parameters_[i];
      case SymbolKind::sigma: return sigma_[i];
      case SymbolKind::counter: return counters_[i];
      case SymbolKind::time: return time_;
      default: return 0;
    }
  }

  const Form& form_;
  std::vector<double> parameters_, states_, sigma_, counters_;
  double time_ = 0;
  std::minstd_rand random_;
};

class Balances {
 public:
  Balances(const Model& model, const Form& form, const std::vector<RateEquation>& equations,
           const std::vector<Expr>& unknowns, const std::vector<VirtualForce>& forces)
      : model_(model),
        form_(form),
        equations_(equations),
        unknowns_(unknowns),
        forces_(forces),
        solution_(unknowns.size()) {}

  std::vector<Expr> run() {
    collect();
    for (unsigned k = 1; k <= probed_points; ++k) numbers_.push_back(numbers_at(k, false));
    row_of_ = match_rows(largest_numbers(numbers_), count());
    if (std::find(row_of_.begin(), row_of_.end(), -1) != row_of_.end())  // a parameter may be 0 here and not later
      row_of_ = match_rows(numbers_at(1, true), count());
    if (const auto free = std::find(row_of_.begin(), row_of_.end(), -1); free != row_of_.end()) fail_unmatched();
    const std::vector<std::vector<int>> blocks = triangular_blocks(rows_, row_of_);
    add_forces(blocks);
    for (const std::vector<int>& block : blocks) solve(block);
    return std::move(solution_);
  }

 private:
  int count() const { return static_cast<int>(unknowns_.size()); }
  const std::string& name(int column) const { return unknowns_[at(column)].symbol().name; }

  /// Coefficients of the unknowns, and the rest on the right side.
  void collect() {
    ExprMap<int> column;
    ExprMap<Expr> zero;
    std::vector<Derivative> by;
    for (size_t j = 0; j < unknowns_.size(); ++j) {
      column.emplace(unknowns_[j], static_cast<int>(j));
      zero.emplace(unknowns_[j], 0.0);
      by.emplace_back(unknowns_[j]);
    }
    for (const RateEquation& equation : equations_) {
      std::map<int, Expr>& row = rows_.emplace_back();
      for (const Expr& s : symbols_in(std::span(&equation.residual, 1))) {
        if (!s.is_symbol(SymbolKind::rate)) continue;
        const int j = column.at(s);
        const Expr coefficient = by[at(j)](equation.residual);
        check_coefficient(coefficient, s, equation);
        if (!coefficient.is_number(0)) row.emplace(j, coefficient);
      }
      right_.push_back(-substitute(equation.residual, zero));
    }
  }

  void check_coefficient(const Expr& coefficient, const Expr& rate, const RateEquation& equation) const {
    const std::string& name = rate.symbol().name;
    for (const Expr& s : symbols_in(std::span(&coefficient, 1))) {
      if (s.is_symbol(SymbolKind::rate))
        throw Error(ErrorKind::model, fmt::format("this equation is not linear in {}", name), equation.place,
                    "accelerations and other unknown rates enter equations linearly");
      if (s.is_symbol(SymbolKind::lambda))
        throw Error(ErrorKind::model,
                    fmt::format("the coefficient of {} depends on the multiplier '{}'", name, s.symbol().name),
                    equation.place, "masses depend on states, time and parameters");
      if (!s.is_symbol(SymbolKind::sigma)) continue;
      const Switch& w = form_.switches[at(s.symbol().index)];
      if (w.hidden || w.kink) continue;
      throw Error(ErrorKind::model, fmt::format("the coefficient of {} switches with '{}'", name, w.name),
                  equation.place, "let a jump change a state of rate 0, and use that state as the mass");
    }
  }

  NumberRows numbers_at(unsigned point, bool other_parameters) const {
    const NearStart near(model_, form_, point, other_parameters);
    std::vector<Expr> entries;
    for (const auto& row : rows_) {
      for (const auto& [j, e] : row) entries.push_back(e);
    }
    const std::vector<double> values = near(entries);
    NumberRows out(rows_.size());
    size_t next = 0;
    for (size_t i = 0; i < rows_.size(); ++i) {
      for (const auto& [j, e] : rows_[i]) out[i].emplace(j, values[next++]);
    }
    return out;
  }

  /// The geometric mean would do: an entry that vanishes at one point counts by the others.
  static NumberRows largest_numbers(const std::vector<NumberRows>& all) {
    NumberRows out = all.front();
    for (const NumberRows& rows : all) {
      for (size_t i = 0; i < rows.size(); ++i) {
        for (const auto& [j, v] : rows[i]) {
          double& largest = out[i].at(j);
          if (std::isfinite(v) && !(std::abs(v) <= std::abs(largest))) largest = v;
        }
      }
    }
    return out;
  }

  Block block_of(const std::vector<int>& columns, const NumberRows& numbers) const {
    Block b{.n = static_cast<int>(columns.size()), .values = std::vector<double>(columns.size() * columns.size())};
    for (int i = 0; i < b.n; ++i) {
      for (int j = 0; j < b.n; ++j) {
        const auto& row = numbers[at(row_of_[at(columns[at(i)])])];
        const auto found = row.find(columns[at(j)]);
        if (found != row.end()) b(i, j) = found->second;
      }
    }
    return b;
  }

  /// Forces by virtual power on the right sides.
  void add_forces(const std::vector<std::vector<int>>& blocks) {
    if (forces_.empty()) return;
    ExprMap<int> column;
    for (size_t j = 0; j < unknowns_.size(); ++j) column.emplace(unknowns_[j], static_cast<int>(j));
    const auto [block_of_unknown, scale] = row_scales(blocks);
    for (const VirtualForce& force : forces_) {
      std::map<int, double> first;  // by block
      for (const auto& [rate, e] : force.on) {
        const int j = column.at(rate);
        const double own = scale[at(j)], known = first.try_emplace(block_of_unknown[at(j)], own).first->second;
        if (own == 0 || std::abs(own - known) > equal_coefficients * std::abs(known))
          throw Error(
              ErrorKind::model,
              fmt::format("'{}' cannot act by virtual power: the matrix of the accelerations is not symmetric",
                          force.name),
              equations_[at(row_of_[at(j)])].place,
              fmt::format("multiply equations until they are balances of forces, or write {} into them", force.name));
        Expr& right = right_[at(row_of_[at(j)])];
        right = right + e;
      }
    }
  }

  /// For each unknown its block and the factor of its row that makes the block symmetric; 0 where there is none, or
  /// where blocks are joined one way.
  std::pair<std::vector<int>, std::vector<double>> row_scales(const std::vector<std::vector<int>>& blocks) const {
    std::vector<int> block_of_unknown(unknowns_.size());
    std::vector<double> scales(unknowns_.size(), 1);
    for (size_t b = 0; b < blocks.size(); ++b) {
      const std::vector<int>& columns = blocks[b];
      std::vector<double> own(columns.size(), 1);
      for (const NumberRows& numbers : numbers_) {
        if (columns.size() == 1 || static_cast<int>(columns.size()) > largest_full_block) break;
        const Block block = block_of(columns, numbers);
        if (!std::all_of(block.values.begin(), block.values.end(), [](double v) { return std::isfinite(v); })) continue;
        own = symmetric_scaling(block);
        break;
      }
      for (size_t k = 0; k < columns.size(); ++k) {
        const auto& row = rows_[at(row_of_[at(columns[k])])];
        const bool alone = std::all_of(row.begin(), row.end(), [&](const auto& entry) {
          return std::binary_search(columns.begin(), columns.end(), entry.first);
        });
        block_of_unknown[at(columns[k])] = static_cast<int>(b);
        scales[at(columns[k])] = own.empty() || !alone ? 0 : own[k];
      }
    }
    return {block_of_unknown, scales};
  }

  /// A block with the rates of earlier blocks on its right side.
  void solve(const std::vector<int>& columns) {
    std::unordered_map<int, int> local;
    for (size_t k = 0; k < columns.size(); ++k) local.emplace(columns[k], static_cast<int>(k));
    FormulaRows rows(columns.size());
    std::vector<Expr> right;
    for (size_t k = 0; k < columns.size(); ++k) {
      const size_t row = at(row_of_[at(columns[k])]);
      Expr rest = right_[row];
      for (const auto& [j, e] : rows_[row]) {
        if (const auto own = local.find(j); own != local.end()) {
          rows[k].emplace(own->second, e);
        } else {
          rest = rest - e * solution_[at(j)];
        }
      }
      right.push_back(std::move(rest));
    }
    const std::vector<Expr> x = solve_block(columns, rows, std::move(right));
    for (size_t k = 0; k < columns.size(); ++k) solution_[at(columns[k])] = x[k];
  }

  std::vector<Expr> solve_block(const std::vector<int>& columns, const FormulaRows& rows, std::vector<Expr> right) {
    const int n = static_cast<int>(columns.size());
    std::vector<Expr> divisors;
    if (n == 1) {
      if (rows[0].at(0).is_number(0)) fail_singular(columns);
      return {right[0] / rows[0].at(0)};
    }
    std::vector<Block> blocks;
    for (const NumberRows& numbers : numbers_) {
      if (n > largest_full_block) break;
      Block b = block_of(columns, numbers);
      if (std::all_of(b.values.begin(), b.values.end(), [](double v) { return std::isfinite(v); }))
        blocks.push_back(std::move(b));
    }
    check_regular(columns, blocks);
    const bool positive = n > largest_full_block || std::all_of(blocks.begin(), blocks.end(), scales_to_positive);
    if (positive) {
      const bool symmetric = n <= largest_full_block && std::all_of(blocks.begin(), blocks.end(), is_symmetric);
      return eliminate(rows, std::move(right), diagonal_pivots(rows), symmetric, divisors);
    }
    if (n <= 3) return solve_by_cofactors(rows, right, divisors);
    if (!blocks.empty() && is_constant_block(rows)) {
      const std::vector<int> taken = pivot_rows(blocks.front());
      std::vector<std::pair<int, int>> pivots;
      for (int k = 0; k < n; ++k) pivots.emplace_back(taken[at(k)], k);
      return eliminate(rows, std::move(right), pivots, false, divisors);
    }
    return solve_by_squares(rows, right, blocks, divisors);
  }

  static bool is_constant_block(const FormulaRows& rows) {
    std::vector<Expr> entries;
    for (const auto& row : rows) {
      for (const auto& [j, e] : row) entries.push_back(e);
    }
    const std::vector<Expr> used = symbols_in(entries);
    return std::all_of(used.begin(), used.end(), is_constant);
  }

  static std::vector<std::pair<int, int>> diagonal_pivots(const FormulaRows& rows) {
    std::vector<std::vector<int>> neighbours(rows.size());
    for (size_t i = 0; i < rows.size(); ++i) {
      for (const auto& [j, e] : rows[i]) {
        if (j == static_cast<int>(i)) continue;
        neighbours[i].push_back(j);
        neighbours[at(j)].push_back(static_cast<int>(i));
      }
    }
    std::vector<std::pair<int, int>> pivots;
    for (const int k : least_degree_order(neighbours)) pivots.emplace_back(k, k);
    return pivots;
  }

  /// M^T D M x = M^T D right with D scaling rows: regular wherever M is, and positive definite.
  static std::vector<Expr> solve_by_squares(const FormulaRows& rows, const std::vector<Expr>& right,
                                            const std::vector<Block>& blocks, std::vector<Expr>& divisors) {
    const size_t n = rows.size();
    FormulaRows squares(n);
    std::vector<Expr> sums(n, Expr(0.0));
    for (size_t i = 0; i < n; ++i) {
      double largest = 0;
      for (size_t j = 0; j < n && !blocks.empty(); ++j)
        largest = std::max(largest, std::abs(blocks.front()(static_cast<int>(i), static_cast<int>(j))));
      const Expr weight = largest > 0 ? std::exp2(-2 * std::round(std::log2(largest))) : 1.0;
      for (const auto& [j, e] : rows[i]) {
        const Expr scaled = weight * e;
        sums[at(j)] = sums[at(j)] + scaled * right[i];
        for (const auto& [k, f] : rows[i]) {
          if (k > j) continue;
          const auto [entry, fresh] = squares[at(j)].try_emplace(k, scaled * f);
          if (!fresh) entry->second = entry->second + scaled * f;
        }
      }
    }
    for (size_t j = 0; j < n; ++j) {
      for (const auto& [k, e] : squares[j]) squares[at(k)].insert_or_assign(static_cast<int>(j), e);
    }
    return eliminate(squares, sums, diagonal_pivots(squares), true, divisors);
  }

  /// Complains about a block that is singular at every point, also where parameters are others.
  void check_regular(const std::vector<int>& columns, const std::vector<Block>& blocks) const {
    const auto all_singular = [](const std::vector<Block>& all) {
      return !all.empty() &&
             std::all_of(all.begin(), all.end(), [](const Block& b) { return !null_vector(b).empty(); });
    };
    if (!all_singular(blocks)) return;
    std::vector<Block> others;
    for (unsigned k = 1; k <= probed_points; ++k) others.push_back(block_of(columns, numbers_at(k, true)));
    if (!all_singular(others)) return;
    const std::vector<double> free = null_vector(blocks.front());
    std::vector<int> undetermined;
    for (size_t k = 0; k < columns.size(); ++k) {
      if (std::abs(free[k]) > equal_coefficients) undetermined.push_back(columns[k]);
    }
    fail_singular(undetermined);
  }

  void fail_unmatched() const {
    std::vector<int> columns;
    for (size_t j = 0; j < row_of_.size(); ++j) {
      if (row_of_[j] < 0) columns.push_back(static_cast<int>(j));
    }
    fail_singular(columns);
  }

  [[noreturn]] void fail_singular(const std::vector<int>& columns) const {
    std::vector<std::string> names;
    const size_t most = 6;
    for (size_t k = 0; k < std::min(columns.size(), most); ++k) names.push_back(name(columns[k]));
    if (columns.size() > most) names.emplace_back("...");
    // The equation that would have given the last of them.
    const int last = columns.back(), row = row_of_.empty() ? -1 : row_of_[at(last)];
    throw Error(ErrorKind::model, fmt::format("the equations do not determine {}", fmt::join(names, ", ")),
                equations_[row < 0 ? equations_.size() - 1 : at(row)].place,
                "their matrix is singular whatever the states are: does each of them have a mass, and is no equation "
                "a sum of others?");
  }

  const Model& model_;
  const Form& form_;
  const std::vector<RateEquation>& equations_;
  const std::vector<Expr>& unknowns_;
  const std::vector<VirtualForce>& forces_;
  FormulaRows rows_;
  std::vector<Expr> right_, solution_;
  std::vector<NumberRows> numbers_;
  std::vector<int> row_of_;
};

}  // namespace

std::vector<Expr> solve_balances(const Model& model, const Form& form, const std::vector<RateEquation>& equations,
                                 const std::vector<Expr>& unknowns, const std::vector<VirtualForce>& forces) {
  return Balances(model, form, equations, unknowns, forces).run();
}

}  // namespace saltus
