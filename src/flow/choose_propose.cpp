#include <algorithm>
#include <cmath>
#include <map>

#include "base/index.hpp"
#include "flow/chooser.hpp"
#include "solve/box.hpp"

namespace saltus {

bool Chooser::any_forced(const std::vector<size_t>& group) const {
  return std::any_of(group.begin(), group.end(), [&](size_t z) { return zeros_[z].depends; });
}

bool Chooser::enumerate(const std::vector<size_t>& group, size_t most, std::vector<Candidate>& out) {
  out.assign(1, {});
  for (size_t i = 0; i < group.size(); ++i) {
    const AtZero& z = zeros_[group[i]];
    std::vector<Candidate> longer;
    for (const Candidate& c : out) {
      for (const char letter : possible_letters(group, c.letters, z)) {
        if (fits_ties(group, c.letters, z.unknown, letter)) longer.push_back({.letters = c.letters + letter});
      }
    }
    out = std::move(longer);
    if (out.size() > most) return false;
  }
  return true;
}

std::string Chooser::possible_letters(const std::vector<size_t>& group, const std::string& letters, const AtZero& z) {
  if (z.unknown >= program_.switches() || !program_.nested(z.unknown)) return letters_of(z);
  std::vector<double> sigma(at(program_.switches()));
  bool depends = z.depends, open = false;
  for (int i = 0; i < program_.switches(); ++i) sigma[at(i)] = value_of(i, choice_.mode.switches[at(i)]);
  for (size_t k = 0; k < letters.size(); ++k) {
    const int u = zeros_[group[k]].unknown;
    if (u >= program_.switches()) continue;
    sigma[at(u)] = value_of(u, letters[k]);
    const std::vector<int>& dependents = program_.dependents(u);
    if (std::find(dependents.begin(), dependents.end(), z.unknown) == dependents.end()) continue;
    depends = true;
    open = open || (letters[k] == '0' && !program_.timed(u) && program_.resting_letter(u) == '0');
  }
  if (open) return "+-0";
  if (!depends) return letters_of(z);
  point_.evaluate(x_, t_, sigma, counters_);
  const int sign = point_.sign(program_.point(z.unknown, 0), near_bounds);
  return sign > 0 ? "+" : sign < 0 ? "-" : letters_of(z);
}

double Chooser::value_of(int i, char letter) const {
  if (letter == '0' || letter == '=') return program_.model().form.switches[at(i)].at_zero;
  return letter == '+' ? 1 : -1;
}

namespace {

void add_new(std::vector<Candidate>& out, std::vector<Candidate> proposed) {
  for (Candidate& c : proposed) {
    const bool known = std::any_of(out.begin(), out.end(), [&](const Candidate& o) { return o.letters == c.letters; });
    if (!known) out.push_back(std::move(c));
  }
}

/// True if the symmetric part is dominated by its diagonal, which is positive.
bool is_dominated(const SparseMat& M) {
  Vec diagonal = Vec::Zero(M.rows()), others = Vec::Zero(M.rows());
  for (Index j = 0; j < M.cols(); ++j) {
    for (const auto [row, value] : M.column(j)) {
      if (row == j) {
        diagonal[j] += value;
      } else {  // |a + b|/2 is at most (|a| + |b|)/2
        others[row] += 0.5 * std::abs(value);
        others[j] += 0.5 * std::abs(value);
      }
    }
  }
  constexpr double rounding = 1e-12;
  for (Index i = 0; i < M.rows(); ++i) {
    if (!(diagonal[i] > 0 && diagonal[i] >= others[i] * (1 - rounding))) return false;
  }
  return true;
}

bool is_dominated(const Mat& M) { return is_dominated(SparseMat(M)); }

}  // namespace

std::vector<Candidate> Chooser::few(const std::vector<size_t>& group, bool& only) {
  std::vector<Candidate> out(1);
  size_t fresh = 0;
  for (const size_t z : group) fresh += zeros_[z].fresh;
  constexpr size_t most_fresh = 4;
  for (const size_t z : group) {
    const bool varies = zeros_[z].fresh && fresh <= most_fresh;
    const std::string letters = varies ? letters_of(zeros_[z]) : std::string(1, before_letter(zeros_[z].unknown));
    std::vector<Candidate> longer;
    for (const Candidate& c : out) {
      for (const char letter : letters) longer.push_back({.letters = c.letters + letter});
    }
    out = std::move(longer);
  }
  add_new(out, by_solver(group, x_, t_, only));
  return out;
}

void Chooser::add_many(const std::vector<size_t>& group, std::vector<Candidate>& out) {
  std::vector<Candidate> proposed;
  bool only = false;
  for (const double share : {1e-6, 1e-3}) {  // what leaves along a tangent is seen a little later
    const double soon = share * options_.time_scale * options_.direction;
    const std::vector<double> x = state_after(soon);
    for (Candidate& c : by_solver(group, x, t_ + soon, only)) proposed.push_back(std::move(c));
  }
  proposed.push_back(one_by_one(group));
  for (Candidate& c : walk(group)) proposed.push_back(std::move(c));
  add_new(out, std::move(proposed));
}

bool Chooser::fits_ties(const std::vector<size_t>& group, const std::string& letters, int u, char letter) const {
  const auto tie = series_.ties().find(u);
  if (tie == series_.ties().end()) return true;
  for (size_t i = 0; i < letters.size(); ++i) {
    if (zeros_[group[i]].unknown != tie->second.first) continue;
    const char other = letters[i];
    const bool alike = tie->second.second > 0 || other == '0' || other == '=';
    return alike ? letter == other : letter != other && letter != '0';
  }
  return true;
}

/// The sign of a surface under the switches of a mode, where sliding surfaces have the sigma of that mode.
int Chooser::sign_behind(const Mode& mode, int u) {
  series_.set_mode(mode);
  if (series_.evaluate(x_, t_, counters_) != SeriesStatus::ok) return 0;
  std::vector<double> sigma;
  for (int i = 0; i < program_.switches(); ++i) sigma.push_back(series_.unknown(i)[0]);
  point_.evaluate(x_, t_, sigma, counters_);
  return point_.sign(program_.point(u, 0), rested_bounds);
}

Candidate Chooser::one_by_one(const std::vector<size_t>& group) {
  Candidate c;
  const int order = std::min(decision_order, series_.order());
  for (const size_t member : group) {
    const AtZero& z = zeros_[member];
    const std::string letters = possible_letters(group, c.letters, z);
    if (letters.size() == 1 || z.unknown >= program_.switches()) {
      c.letters += letters.size() == 1 ? letters[0] : before_letter(z.unknown);
      continue;
    }
    if (const int sign = nested(z.unknown) ? sign_behind(with(group, c.letters), z.unknown) : 0; sign != 0) {
      c.letters += sign > 0 ? '+' : '-';
      continue;
    }
    int starts[2] = {0, 0};
    for (const int side : {0, 1}) {
      Mode mode = with(group, c.letters);
      mode.switches[at(z.unknown)] = side == 0 ? '+' : '-';
      series_.set_mode(mode);
      if (series_.expand(x_, t_, counters_, order) != SeriesStatus::ok) continue;
      double size = 0;
      for (int k = 1; k <= 2; ++k) size = std::max(size, std::abs(function(z.unknown)[k]));
      starts[side] = leading_coefficient(function(z.unknown), 1, order, options_.time_scale, options_.direction,
                                         rate_rounding * size)
                         .sign;
    }
    c.letters += starts[0] > 0 ? '+' : starts[1] < 0 ? '-' : '0';
  }
  return c;
}

namespace {

void scale_rows(Mat& M, const Vec& scale) {
  for (Index a = 0; a < M.rows(); ++a) M.row(a) *= scale[a];
}

void scale_rows(SparseMat& M, const Vec& scale) { M = scale.asDiagonal() * std::move(M); }

}  // namespace

Vec Chooser::bounds(const std::vector<int>& active, Vec& lo, Vec& hi) const {
  const Index n = ix(active.size());
  Vec push = Vec::Ones(n);
  lo = Vec::Zero(n);
  hi = Vec::Constant(n, HUGE_VAL);
  for (Index a = 0; a < n; ++a) {
    const int u = active[ux(a)];
    if (is_joint(u)) lo[a] = -HUGE_VAL;
    if (u >= program_.switches()) continue;
    lo[a] = -series_.hold(u);
    hi[a] = series_.hold(u);
    push[a] = -options_.direction;
  }
  return push;
}

std::vector<Candidate> Chooser::by_solver(const std::vector<size_t>& group, std::span<const double> x, double t,
                                          bool& only) {
  std::string all;
  for (const size_t z : group) all += zeros_[z].unknown < program_.switches() ? '0' : 'c';
  if (!may_slide(group, all)) return {};
  series_.set_mode(with(group, all));
  const std::vector<int> active = series_.active();
  if (!series_.tape().slope_affine || active.empty()) return {};
  constexpr size_t sparse_from = 64;
  const auto solved = [&](auto problem) -> BoxSolution {
    if (!series_.linear_system(x, t, counters_, problem.M, problem.q)) return {};
    const Vec push = bounds(active, problem.lo, problem.hi);
    scale_rows(problem.M, push);
    problem.q = problem.q.cwiseProduct(push);
    only = is_dominated(problem.M);
    return solve_box(problem);
  };
  const BoxSolution solution = active.size() < sparse_from ? solved(BoxProblem{}) : solved(SparseBoxProblem{});
  std::map<int, Index> row_of;
  for (size_t a = 0; a < active.size(); ++a) row_of.emplace(active[a], ix(a));
  if (solution.status != SolveStatus::solved) return {};
  Candidate c;
  std::vector<size_t> unsure;
  for (size_t i = 0; i < group.size(); ++i) {
    const int u = zeros_[group[i]].unknown;
    const auto row = row_of.find(u);
    if (row == row_of.end()) {  // follows another one
      c.letters += '0';
      continue;
    }
    const size_t a = static_cast<size_t>(row->second);
    const BoundState state = solution.state[a];
    const bool is_switch = u < program_.switches();
    if (solution.degenerate[a] && !is_joint(u) && !is_part(u)) unsure.push_back(i);
    c.letters += state == BoundState::inside || solution.degenerate[a] ? (is_switch ? '0' : 'c')
                 : !is_switch                                          ? 'o'
                 : state == BoundState::upper                          ? '+'
                                                                       : '-';
  }
  std::vector<Candidate> out{c};
  constexpr size_t most_unsure = 6;
  for (size_t k = 0; k < std::min(unsure.size(), most_unsure); ++k) {
    const size_t i = unsure[k];
    const int u = zeros_[group[i]].unknown;
    const char other = u >= program_.switches()                                                 ? 'o'
                       : solution.state[static_cast<size_t>(row_of.at(u))] == BoundState::upper ? '+'
                                                                                                : '-';
    const size_t count = out.size();
    for (size_t o = 0; o < count; ++o) {
      Candidate more = out[o];
      more.letters[i] = other;
      out.push_back(std::move(more));
    }
  }
  return out;
}

std::vector<double> Chooser::state_after(double tau) {
  std::vector<double> x(x_.begin(), x_.end());
  series_.set_mode(before_);
  const int order = std::min(2, series_.order());
  if (series_.expand(x_, t_, counters_, order) != SeriesStatus::ok) return x;
  for (size_t i = 0; i < x.size(); ++i) {
    const double* c = series_.state(static_cast<int>(i));
    x[i] = c[0] + tau * (c[1] + (order > 1 ? tau * c[2] : 0));
  }
  return x;
}

std::vector<Candidate> Chooser::walk(const std::vector<size_t>& group) {
  Candidate c;
  for (const size_t z : group) c.letters += zeros_[z].unknown < program_.switches() ? '0' : 'c';
  const size_t most = 20 * group.size() + 100;
  for (size_t round = 0; round < most; ++round) {
    Mode mode = with(group, c.letters);
    series_.set_mode(mode);
    if (series_.expand(x_, t_, counters_, std::min(2, series_.order())) != SeriesStatus::ok) break;
    double worst = 1e-12;
    size_t which = group.size();
    char letter = '0';
    for (size_t i = 0; i < group.size(); ++i) {
      const int u = zeros_[group[i]].unknown;
      const bool is_switch = u < program_.switches();
      const char now = c.letters[i];
      const double value = series_.unknown(u)[0];
      if (is_joint(u) || is_part(u)) continue;
      if (now == '0' && std::abs(value) - series_.hold(u) > worst) {
        worst = std::abs(value) - series_.hold(u);
        which = i;
        letter = value > 0 ? '+' : '-';
      } else if (now == 'c' && -value > worst) {
        worst = -value;
        which = i;
        letter = 'o';
      } else if (now != '0' && now != 'c') {
        const int degree = is_switch ? 1 : program_.model().form.gaps[at(u - program_.switches())].degree;
        const double rate = function(u)[degree] * (degree % 2 ? options_.direction : 1);
        const double against = now == '-' ? rate : -rate;
        if (against > worst) {
          worst = against;
          which = i;
          letter = is_switch ? '0' : 'c';
        }
      }
    }
    if (which == group.size()) return {c};
    c.letters[which] = letter;
  }
  return {};
}

}  // namespace saltus
