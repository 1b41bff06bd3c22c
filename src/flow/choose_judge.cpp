#include <algorithm>
#include <cmath>

#include "base/index.hpp"

#include "flow/chooser.hpp"

namespace saltus {

Mode Chooser::with(const std::vector<size_t>& group, const std::string& letters) const {
  Mode mode = choice_.mode;
  for (size_t i = 0; i < letters.size(); ++i) {
    const int u = zeros_[group[i]].unknown;
    set_letter(mode, program_, u, letters[i] == '0' ? program_.resting_letter(u) : letters[i]);
  }
  return mode;
}

void Chooser::enter(const std::vector<size_t>& group, Candidate& c) {
  c.mode = with(group, c.letters);
  series_.set_mode(c.mode);
  bool any = false;
  for (size_t i = 0; i < group.size(); ++i) {
    const int u = zeros_[group[i]].unknown;
    if (c.letters[i] != '0' || !series_.idle(u)) continue;
    c.mode.switches[at(u)] = '=';
    any = true;
  }
  for (size_t i = 0; i < group.size(); ++i) {
    const int u = zeros_[group[i]].unknown;
    if (c.letters[i] != '0' || !nested(u) || is_flat(c, u)) continue;
    if (is_zero_on_both_sides(c, u)) c.mode.switches[at(u)] = '=';
    any = true;
  }
  if (any) series_.set_mode(c.mode);
}

bool Chooser::is_zero_on_both_sides(const Candidate& c, int u) {
  const int order = std::min(2, series_.order());
  for (const char side : {'+', '-'}) {
    Mode mode = c.mode;
    mode.switches[at(u)] = side;
    series_.set_mode(mode);
    if (series_.expand(x_, t_, counters_, order) != SeriesStatus::ok) return false;
    const double* h = function(u);
    if (std::any_of(h, h + order + 1, [](double coefficient) { return coefficient != 0; })) return false;
  }
  return true;
}

bool Chooser::is_flat(const Candidate& c, int u) const {
  return u < program_.switches() && c.mode.switches[at(u)] == '=';
}

std::vector<Candidate> Chooser::judge(const std::vector<size_t>& group, std::vector<Candidate>& candidates, int order) {
  std::vector<double> steepest(group.size(), 0.0);  // |h'| among all candidates: what rounding is compared with
  for (Candidate& c : candidates) {
    c.usable = false;
    if (!may_slide(group, c.letters)) continue;
    enter(group, c);
    series_.share_evenly(false);
    c.usable = start(group, c, std::min(2, series_.order()));
    if (!c.usable && series_.redundant_mode()) {
      series_.share_evenly(true);
      c.usable = start(group, c, std::min(2, series_.order()));
    }
    fastest_.resize(at(program_.states()), 0.0);
    if (!c.usable) continue;
    c.first.clear();
    for (const size_t z : group) c.first.push_back(function(zeros_[z].unknown)[1]);
    if (!in_range(c.unknowns)) continue;  // forces that no mode can have make rates that none has
    for (int k = 0; k < program_.states(); ++k)
      fastest_[at(k)] = std::max(fastest_[at(k)], std::abs(series_.rate(k)[0]));
    const std::vector<double> reaches = series_.reaches();
    for (size_t i = 0; i < group.size(); ++i) {
      const double* f = function(zeros_[group[i]].unknown);
      if (std::isfinite(f[1])) steepest[i] = std::max(steepest[i], std::abs(f[1]));
      if (series_.tape().degree[at(zeros_[group[i]].unknown)] == 1)  // what cancels where all of them stick
        steepest[i] = std::max(steepest[i], reaches[at(zeros_[group[i]].unknown)]);
      // An item that only accelerates takes its rounding from the acceleration.
      if (zeros_[group[i]].known >= 2 && std::isfinite(f[2]))
        steepest[i] = std::max(steepest[i], std::abs(f[2]) * options_.time_scale);
    }
  }
  std::vector<Candidate> kept;
  for (Candidate& c : candidates) {
    if (!c.usable) continue;
    series_.set_mode(c.mode);
    series_.share_evenly(false);
    bool fits = start(group, c, order) && stays(group, c, order, steepest);
    if (!fits && series_.redundant_mode()) {  // a vertex may violate open gaps where an even share does not
      series_.share_evenly(true);
      fits = start(group, c, order) && stays(group, c, order, steepest);
    }
    if (fits) {
      note_slopes(c);
      c.rates.clear();
      c.flow.clear();
      for (int k = 0; k < program_.states(); ++k) {
        c.rates.push_back(series_.rate(k)[0]);
        double time = options_.time_scale;  // as rates, so that orders can be compared
        for (int j = 2; j <= order; ++j, time *= options_.time_scale) c.flow.push_back(series_.state(k)[j] * time);
      }
      kept.push_back(c);
    }
  }
  drop_sides_of_rest(group, kept);
  const auto is_weak = [](const Candidate& c) { return c.weak; };
  const bool any_strong = !std::all_of(kept.begin(), kept.end(), is_weak);
  weak_.clear();
  if (any_strong && options_.at_start) std::copy_if(kept.begin(), kept.end(), std::back_inserter(weak_), is_weak);
  if (any_strong) std::erase_if(kept, is_weak);
  if (!any_strong && order < series_.order()) kept.clear();
  return kept;
}

void Chooser::drop_sides_of_rest(const std::vector<size_t>& group, std::vector<Candidate>& kept) const {
  const auto rests_in = [&](const Candidate& c, const Candidate& rest) {
    if (!c.weak || c.letters == rest.letters) return false;
    for (size_t i = 0; i < group.size(); ++i) {
      const bool same = c.letters[i] == rest.letters[i];
      if (!same && !(is_flat(rest, zeros_[group[i]].unknown) && c.leading[i].sign == 0)) return false;
    }
    return true;
  };
  const std::vector<Candidate> all = kept;
  std::erase_if(kept, [&](const Candidate& c) {
    return std::any_of(all.begin(), all.end(), [&](const Candidate& rest) { return rests_in(c, rest); });
  });
}

bool Chooser::may_slide(const std::vector<size_t>& group, const std::string& letters) {
  Mode mode = with(group, letters);
  const ModeTape& tape = program_.tape(mode.switches);
  for (size_t i = 0; i < group.size(); ++i) {
    if (letters[i] != '0' && letters[i] != 'c') continue;
    const AtZero& z = zeros_[group[i]];
    const int degree = tape.degree[at(z.unknown)];
    if (letters[i] == '0' && (degree < 0 || program_.resting_letter(z.unknown) == '=')) continue;  // by its series
    const bool higher = tape.lettered && degree > program_.point_degree(z.unknown);  // looked at in its series
    if (z.known < degree && !higher && !(degree == 1 && program_.nested(z.unknown))) return false;
  }
  return true;
}

bool Chooser::start(const std::vector<size_t>& group, Candidate& c, int order) {
  const size_t slid = series_.active().size();
  if (series_.tape().slope_affine || slid == 0) {
    if (series_.distribute(x_, t_, counters_, order, options_.time_scale, options_.direction) != SeriesStatus::ok)
      return false;
  } else if (!start_nonlinear(group, c, order)) {
    return false;
  }
  c.unknowns.clear();
  for (int u = 0; u < program_.unknowns(); ++u) c.unknowns.push_back(series_.unknown(u)[0]);
  return true;
}

bool Chooser::in_range(const std::vector<double>& unknowns) const {
  for (const int u : series_.active()) {
    if (is_joint(u) || is_part(u)) continue;
    const double v = unknowns[at(u)];
    if (u < program_.switches() ? std::abs(v) > series_.hold(u) + bound_margin : v < -1e-9 * (1 + std::abs(v)))
      return false;
  }
  return true;
}

bool Chooser::start_nonlinear(const std::vector<size_t>& group, Candidate& c, int order) {
  bool all_old = true;
  for (const size_t z : group) all_old = all_old && !zeros_[z].fresh;
  std::vector<std::vector<double>> found, rates;
  std::vector<bool> attracts;
  const auto attempt = [&](const std::vector<double>& guess) {
    series_.guess(guess);
    if (series_.expand(x_, t_, counters_, 1) != SeriesStatus::ok || !keeps_flat(group, c)) return;
    std::vector<double> values;
    for (int u = 0; u < program_.unknowns(); ++u) values.push_back(series_.unknown(u)[0]);
    if (!in_range(values)) return;
    std::vector<double> moves;
    double rounding = 0;  // at rest, the forces cancel and leave no more
    for (int k = 0; k < program_.states(); ++k) {
      moves.push_back(series_.rate(k)[0]);
      rounding = std::max(rounding, near_bounds * series_.noise(program_.rate(k)));
    }
    for (const auto& known : rates) {  // what moves the states alike is one solution
      double distance = 0, size = 0;
      for (size_t i = 0; i < moves.size(); ++i) {
        distance = std::max(distance, std::abs(moves[i] - known[i]));
        size = std::max({size, std::abs(moves[i]), std::abs(known[i])});
      }
      if (distance <= same_solution * size + rounding) return;
    }
    rates.push_back(std::move(moves));
    found.push_back(values);
    attracts.push_back(!repels());
  };
  std::vector<double> guess = previous_;
  if (all_old) attempt(guess);
  if (found.empty()) {
    // Switch states of other groups have been found.
    std::vector<int> active = series_.active();
    std::erase_if(active, [&](int u) { return !in_group(group, u); });
    for (const size_t z : group) guess[at(zeros_[z].unknown)] = 0;
    attempt(guess);
    const size_t corners = size_t{1} << std::min<size_t>(active.size(), 6);
    for (size_t corner = 0; corner < corners; ++corner) {
      for (size_t i = 0; i < active.size(); ++i) {
        const double reach = active[i] < program_.switches() ? 0.7 * series_.hold(active[i]) : 1.0;
        guess[at(active[i])] =
            (corner >> std::min<size_t>(i, 6)) & 1 ? reach : (active[i] < program_.switches() ? -reach : 0.0);
      }
      attempt(guess);
    }
  }
  if (found.empty()) return false;
  c.several_sigma = found.size() > 1;
  size_t best = 0;
  for (size_t i = 0; i < found.size(); ++i) {
    if (attracts[i]) {
      best = i;
      break;
    }
  }
  series_.guess(found[best]);
  return series_.expand(x_, t_, counters_, order) == SeriesStatus::ok;
}

bool Chooser::keeps_flat(const std::vector<size_t>& group, const Candidate& c) const {
  double fastest = 0;
  for (int k = 0; k < program_.states(); ++k) fastest = std::max(fastest, std::abs(series_.rate(k)[0]));
  return std::all_of(group.begin(), group.end(), [&](size_t z) {
    const int u = zeros_[z].unknown;
    return !is_flat(c, u) || !(std::abs(function(u)[1]) > same_solution * fastest);
  });
}

bool Chooser::repels() const {
  const auto slides = [&](int member) {
    const int u = series_.active()[at(member)];
    return u < program_.switches() && series_.tape().degree[at(u)] == 1;
  };
  for (const Series::Single& single : series_.singles()) {
    if (slides(single.member) && single.slope * options_.direction > 0) return true;
  }
  for (const Series::Block& block : series_.blocks()) {
    constexpr size_t largest = 30;
    if (block.members.size() > largest || block.singular) continue;
    if (!std::all_of(block.members.begin(), block.members.end(), slides)) continue;
    // Each surface may be scaled by any positive number: compare rows of size one.
    Mat scaled = block.slope;
    for (Index i = 0; i < scaled.rows(); ++i) {
      const double size = scaled.row(i).max_abs();
      if (size > 0) scaled.row(i) /= size;
    }
    for (const std::complex<double>& value : eigenvalues(scaled)) {
      if (value.real() * options_.direction > repelling_eigenvalue) return true;
    }
  }
  return false;
}

bool Chooser::stays(const std::vector<size_t>& group, Candidate& c, int order, const std::vector<double>& steepest) {
  c.leading.assign(group.size(), {});
  c.weak = false;
  for (size_t i = 0; i < group.size(); ++i) {
    const AtZero& z = zeros_[group[i]];
    const char letter = c.letters[i];
    Leading lead;
    if (!std::isfinite(function(z.unknown)[0])) return false;
    if (is_joint(z.unknown) || is_part(z.unknown)) {
      c.leading[i] = {0, 1};
      continue;
    }
    // Rest cannot be judged without a series.
    const bool rests = letter == '0' || is_flat(c, z.unknown);
    if (rests && z.unknown < program_.switches() && !std::isfinite(function(z.unknown)[order])) return false;
    const bool zero_here = !nested(z.unknown) || vanishes(z.unknown, c, steepest[i]);
    if (is_flat(c, z.unknown)) {
      if (!zero_here || start_of(z, order, steepest[i]).sign != 0) return false;
      lead = {order + 1, order < series_.order() ? 0 : 1};
    } else if (letter == '0') {
      if (!zero_here || !lower_vanish(group, c, i)) return false;
      // Where sigma is not determined, nothing has made sure that it keeps the surface.
      if (series_.redundant_mode() && start_of(z, order, steepest[i]).sign != 0) return false;
      lead = sliding_margin(z, order, tangential(group, c, i));
    } else if (letter == 'c') {
      const double reach = steepest[i] * options_.time_scale;
      if (series_.raised(z.unknown) && std::abs(series_.raised_value(z.unknown)) > 1e-9 * reach) return false;
      lead = series_.held(z.unknown) ? Leading{0, 1} : pressing(z, order, tangential(group, c, i));
    } else {
      const int first = zero_here ? std::max(known(group, c, i), nested(z.unknown) ? 1 : 0) : 0;
      lead = leading_coefficient(function(z.unknown), first, order, options_.time_scale, options_.direction,
                                 rate_rounding * steepest[i]);
      if (letter == '-') lead.sign = -lead.sign;
      // Without a series nobody knows.
      if (lead.sign == 0 && !std::isfinite(function(z.unknown)[order])) return false;
    }
    if (lead.sign < 0) return false;
    if (lead.sign == 0) c.weak = true;
    if ((letter == '0' || letter == 'c') && !is_flat(c, z.unknown) && powerless(z.unknown)) {
      // Sigma has no influence here (a kink): the surface is kept only if the flow keeps it by itself.
      const int first = series_.tape().degree[at(z.unknown)];
      if (leading_coefficient(function(z.unknown), std::max(1, first), order, options_.time_scale, 1).sign != 0)
        return false;
      c.weak = true;
    }
    c.leading[i] = lead;
  }
  // Surfaces slid on outside the group must stay in range too.
  for (const int u : series_.active()) {
    if (u < program_.switches() && !is_part(u) && std::abs(series_.unknown(u)[0]) > series_.hold(u) + 1e-9 &&
        !in_group(group, u))
      return false;
  }
  return true;
}

bool Chooser::vanishes(int u, const Candidate& c, double steepest) {
  const double h = function(u)[0];
  if (std::abs(h) <= negligible_time * options_.time_scale * steepest) return true;
  if (u >= program_.switches()) return false;
  std::vector<double> sigma(at(program_.switches()));
  for (int i = 0; i < program_.switches(); ++i) sigma[at(i)] = c.unknowns[at(i)];
  point_.evaluate(x_, t_, sigma, counters_);
  return point_.sign(program_.point(u, 0), rested_bounds) == 0;
}

Leading Chooser::start_of(const AtZero& z, int order, double steepest) const {
  return leading_coefficient(function(z.unknown), 1, order, options_.time_scale, options_.direction,
                             rate_rounding * steepest);
}

bool Chooser::tangential(const std::vector<size_t>& group, const Candidate& c, size_t i) const {
  if (!zeros_[group[i]].leaving || series_.redundant_mode()) return false;
  for (size_t j = 0; j < group.size(); ++j) {
    const int u = zeros_[group[j]].unknown;
    if (j != i && c.letters[j] != before_letter(u)) return false;
    // Kept by a higher derivative from now on, its sigma jumps.
    if (j != i && c.letters[j] == '0' && series_.tape().lettered &&
        series_.tape().degree[at(u)] > zeros_[group[j]].known)
      return false;
  }
  return true;
}

int Chooser::known(const std::vector<size_t>& group, const Candidate& c, size_t i) const {
  const AtZero& z = zeros_[group[i]];
  const bool leaves = z.leaving == c.letters[i] || z.leaving == 'c';  // an algebraic gap is zero on both sides
  const bool touches = leaves && !z.released && tangential(group, c, i);
  const int open = z.unknown < program_.switches() ? program_.point_degree(z.unknown) : z.known;
  const bool kept = z.known >= open && rate_is_kept(group, c, i);
  if (z.known > open && !kept) return open;  // what followed from the letters of others
  return touches || (kept && z.known == open) ? z.known + 1 : z.known;
}

bool Chooser::rate_is_kept(const std::vector<size_t>& group, const Candidate& c, size_t i) const {
  const int u = zeros_[group[i]].unknown;
  if (u >= program_.switches() || before_letter(u) != '0' || !program_.carried(u)) return false;
  const auto keeps = [&](int s) {
    const char now = c.mode.switches[at(s)], before = before_letter(s);
    if (now == before) return true;
    const auto leaves = [&](size_t z) { return zeros_[z].unknown == s && zeros_[z].leaving == now; };
    return before == '0' && !(series_.hold(s) > 1) && std::any_of(group.begin(), group.end(), leaves);
  };
  // The rates of surfaces that still slide are equations; so are the sigma in them.
  std::vector<int> rows{u};
  for (size_t r = 0; r < rows.size(); ++r) {
    if (program_.entering(rows[r]).empty()) return false;  // its equation is not known
    for (const int s : program_.entering(rows[r])) {
      if (!keeps(s)) return false;
      const bool slid = c.mode.switches[at(s)] == '0';
      // One that a higher derivative keeps from now on gives its rate no sigma: that jumps.
      if (slid && s != u && series_.tape().degree[at(s)] > program_.point_degree(s)) return false;
      if (slid && std::find(rows.begin(), rows.end(), s) == rows.end()) rows.push_back(s);
    }
  }
  for (int s = 0; zeros_[group[i]].known > program_.point_degree(u) + 1 && s < program_.switches(); ++s) {
    if (s != u && !keeps(s)) return false;  // later derivatives may have the letters of all
  }
  return true;
}

bool Chooser::lower_vanish(const std::vector<size_t>& group, const Candidate& c, size_t i) {
  const int u = zeros_[group[i]].unknown, degree = series_.tape().degree[at(u)], first = known(group, c, i);
  if (degree <= first || degree <= program_.point_degree(u)) return true;
  std::vector<double> landed(x_.begin(), x_.end());
  series_.project(landed, t_, counters_);
  for (size_t k = 0; k < landed.size(); ++k) {
    const double moved = std::abs(landed[k] - x_[k]), rounding = 64 * eps * std::abs(x_[k]);
    if (!(moved <= rounding + negligible_time * options_.time_scale * fastest_[k])) return false;
  }
  return true;
}

char Chooser::before_letter(int u) const {
  const int m = program_.switches();
  return u < m ? before_.switches[at(u)] : before_.constraints[at(u - m)];
}

bool Chooser::powerless(int u) const {
  for (const Series::Single& single : series_.singles()) {
    if (series_.active()[at(single.member)] != u) continue;
    return single.slope == 0 ||
           std::abs(series_.unknown(u)[1]) * options_.time_scale > 1e9 * (1 + std::abs(series_.unknown(u)[0]));
  }
  return false;
}

bool Chooser::in_group(const std::vector<size_t>& group, int u) const {
  return std::any_of(group.begin(), group.end(), [&](size_t z) { return zeros_[z].unknown == u; });
}

Leading Chooser::pressing(const AtZero& z, int order, bool at_bound) const {
  const double* lambda = series_.unknown(z.unknown);
  const int first = at_bound ? 1 : 0;
  if (series_.tape().degree[at(z.unknown)] != 2)
    return leading_coefficient(lambda, first, order - 1, options_.time_scale, options_.direction);
  // Lambda_k stands for coefficient k + 2 of the gap if it were open: one of the two is to count, and not both.
  std::vector<double> c(at(order) + 1, 0.0);
  for (int k = 0; k + 2 <= order; ++k) c[at(k + 2)] = lambda[k] / ((k + 1) * (k + 2));
  Leading lead = leading_coefficient(c.data(), first + 2, order, options_.time_scale, options_.direction);
  lead.index -= 2;
  return lead;
}

Leading Chooser::sliding_margin(const AtZero& z, int order, bool at_bound) const {
  const double* sigma = series_.unknown(z.unknown);
  if (series_.held(z.unknown)) return {0, 1};
  const double margin = series_.hold(z.unknown) - std::abs(sigma[0]);
  if (!at_bound && std::abs(margin) > bound_margin) return {0, margin > 0 ? 1 : -1};
  const bool above = at_bound ? z.leaving == '+' : sigma[0] > 0;
  const bool slips = at_bound && series_.hold(z.unknown) > 1 && !z.released;  // |sigma| comes down to one
  std::vector<double> c(at(order) + 1, 0.0);
  for (int k = 1; k < order; ++k) c[at(k)] = above != slips ? -sigma[k] : sigma[k];
  return leading_coefficient(c.data(), 1, order - 1, options_.time_scale, options_.direction,
                             sigma_rate_noise / options_.time_scale);
}

}  // namespace saltus
