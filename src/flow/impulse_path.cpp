#include "flow/impulse_path.hpp"

#include <algorithm>
#include <cmath>

#include "base/index.hpp"
#include "flow/thresholds.hpp"
#include "solve/radau.hpp"

namespace saltus {
namespace {

constexpr int stages = 5;

/// Largest |value| relative to a size per state.
double relative(const Vec& value, const Vec& size) {
  double most = 0;
  for (Index i = 0; i < value.size(); ++i) most = std::max(most, std::abs(value[i]) / size[i]);
  return most;
}

/// Sizes of the states and of what an impulse does to them.
Vec sizes(const Vec& y, const Vec& change) {
  Vec out(y.size());
  const double floor = 1e-6 * (y.max_abs() + change.max_abs()) + 1e-290;
  for (Index i = 0; i < y.size(); ++i) out[i] = std::max(std::abs(y[i]) + std::abs(change[i]), floor);
  return out;
}

}  // namespace

bool ImpulsePath::needed(const Program& program, std::span<const int> contacts) {
  return std::any_of(contacts.begin(), contacts.end(), [&](int j) { return program.bends(j); });
}

ImpulsePath::ImpulsePath(const Program& program, std::span<const double> parameters, Mode open,
                         std::span<const int> contacts, std::span<const double> x, double t,
                         std::span<const double> counters)
    : program_(program),
      parameters_(parameters.begin(), parameters.end()),
      counters_(counters.begin(), counters.end()),
      x_(x.begin(), x.end()),
      open_(open),
      mode_(std::move(open)),
      t_(t),
      contacts_(contacts.begin(), contacts.end()),
      place_(x.size(), -1) {
  for (const int j : contacts_) {
    for (const Assignment& a : program_.model().form.gaps[at(j)].direction) moved_.push_back(a.state);
  }
  for (int j = 0; j < program_.constraints(); ++j) {
    if (!program_.joint(j)) continue;
    for (const Assignment& a : program_.model().form.gaps[at(j)].direction) moved_.push_back(a.state);
  }
  std::sort(moved_.begin(), moved_.end());
  moved_.erase(std::unique(moved_.begin(), moved_.end()), moved_.end());
  before_.resize(ix(moved_.size()));
  for (size_t a = 0; a < moved_.size(); ++a) {
    place_[at(moved_[a])] = static_cast<int>(a);
    before_[ix(a)] = x_[at(moved_[a])];
  }
  sort_switches();
}

ImpulsePath::Piece& ImpulsePath::piece(const std::string& letters) {
  Piece& out = pieces_[letters];
  if (out.tape) return out;
  out.tape = &program_.tangent(letters);
  out.jet = std::make_unique<Jet<double>>(out.tape->event.tape, 0);
  out.jet->bind(parameters_);
  std::map<int, std::pair<Index, Index>> rows;  // state and contact of a direction
  for (size_t j = 0; j < contacts_.size(); ++j) {
    const auto& direction = program_.model().form.gaps[at(contacts_[j])].direction;
    for (size_t d = 0; d < direction.size(); ++d)
      rows[program_.event_direction(contacts_[j], static_cast<int>(d))] = {place_[at(direction[d].state)], ix(j)};
  }
  for (const SlopeEntry& e : out.tape->event.by_state) {
    const auto row = rows.find(e.row);
    if (row == rows.end() || place_[at(e.column)] < 0) continue;
    out.by_state.push_back({row->second.first, place_[at(e.column)], row->second.second, e.output});
  }
  return out;
}

ImpulsePath::Piece& ImpulsePath::values(const std::string& letters, const Vec& y) {
  Piece& out = piece(letters);
  Jet<double>& jet = *out.jet;
  const Tape& tape = out.tape->event.tape;
  for (size_t a = 0; a < moved_.size(); ++a) x_[at(moved_[a])] = y[ix(a)];
  for (size_t i = 0; i < tape.states.size(); ++i) *jet[tape.states[i]] = x_[i];
  for (size_t i = 0; i < tape.sigmas.size(); ++i) {
    const char c = letters[i];
    *jet[tape.sigmas[i]] = c == '+'   ? 1.0
                           : c == '-' ? -1.0
                           : c == '=' ? program_.model().form.switches[i].at_zero
                                      : sigma_[i];
  }
  for (size_t i = 0; i < tape.lambdas.size(); ++i) *jet[tape.lambdas[i]] = 0.0;
  for (size_t c = 0; c < tape.counters.size(); ++c) {
    if (tape.counters[c] >= 0) jet.set_counter(c, counters_[c]);
  }
  jet.set_time(t_, 0);
  jet.free(0);
  jet.bound(0);
  return out;
}

ImpulsePath::Piece& ImpulsePath::stand(const Vec& y) {
  Piece* out = &values(letters_, y);
  for (size_t pass = 0; pass <= kinks_.size() + sets_.size(); ++pass) {  // a kink's surface may depend on others
    std::string now = letters_;
    for (const std::vector<int>* switches : {&kinks_, &sets_}) {
      for (const int i : *switches) {
        const double h = output(*out, program_.event_surface(i));
        if (h != 0 && !std::isnan(h)) now[at(i)] = h > 0 ? '+' : '-';
      }
    }
    if (now == letters_) break;
    letters_ = now;
    out = &values(letters_, y);
  }
  standing_ = out;
  return *out;
}

Mat ImpulsePath::directions(const Piece& piece) const {
  Mat D = Mat::Zero(ix(moved_.size()), ix(contacts_.size()));
  for (size_t j = 0; j < contacts_.size(); ++j) {
    const auto& direction = program_.model().form.gaps[at(contacts_[j])].direction;
    for (size_t d = 0; d < direction.size(); ++d)
      D(place_[at(direction[d].state)], ix(j)) =
          output(piece, program_.event_direction(contacts_[j], static_cast<int>(d)));
  }
  return D;
}

Mat ImpulsePath::slope(const Piece& piece) const {
  Mat out = Mat::Zero(before_.size(), before_.size());
  for (const Slope& s : piece.by_state) out(s.row, s.column) += impulse_[s.contact] * output(piece, s.output);
  return out;
}

std::vector<ImpulsePath::Part> ImpulsePath::parts(const Vec& y, bool all) {
  std::vector<Part> out;
  for (size_t b = 0; b < sets_.size(); ++b) {
    const int i = sets_[b], row = program_.event_surface(i);
    Part p{.set = ix(b), .side = letters_[at(i)] == '+' ? 1.0 : -1.0, .rows = stands_in_[b]};
    p.share = p.side * sigma_[at(i)] - 1;
    if (p.share == 0 && !all) continue;
    const Vec slope = surface_slope(*standing_, row);
    const double square = slope.squaredNorm(), h = output(*standing_, row);
    p.projection = Mat::Identity(y.size(), y.size());
    p.on_surface = y;
    if (square > 0) {
      p.on_surface -= slope * (h / square);
      p.projection -= slope * slope.transpose() * (1 / square);
    }
    out.push_back(std::move(p));
  }
  return out;
}

Mat ImpulsePath::mean(const Part& part, const std::function<Mat(Piece&)>& value) {
  std::string letters = letters_;
  char& own = letters[at(sets_[ux(part.set)])];
  own = '+';
  const Mat above = value(values(letters, part.on_surface));
  own = '-';
  return (above + value(values(letters, part.on_surface))) / 2;
}

ImpulsePath::Rates ImpulsePath::rates(const Vec& y, bool all) {
  const Piece& own = stand(y);
  Rates out{.D = directions(own), .slope = slope(own), .by_sigma = Mat::Zero(y.size(), ix(sets_.size()))};
  const Mat D = out.D, A = out.slope;
  for (const Part& p : parts(y, all)) {
    const Mat part = p.rows * (D - mean(p, [&](Piece& q) { return directions(q); }));
    out.by_sigma.col(p.set) = p.side * (part * impulse_);
    if (p.share == 0) continue;
    out.D += p.share * part;
    out.slope += p.share * (p.rows * (A - mean(p, [&](Piece& q) { return slope(q); }) * p.projection));
  }
  values(letters_, y);
  if (free_.size() > 0) {
    out.D = free_ * out.D;
    out.slope = free_ * out.slope;
    out.by_sigma = free_ * out.by_sigma;
  }
  return out;
}

// ---- switches ------------------------------------------------------------------------------------------------------

/// Switches that directions depend on, directly or through surfaces, and that impulses can move.
std::vector<int> ImpulsePath::switches_inside() const {
  std::vector<int> out;
  for (const int j : contacts_) {
    const std::vector<int>& more = program_.impact_switches(j);
    out.insert(out.end(), more.begin(), more.end());
  }
  const auto stands = [&out](int k) { return std::find(out.begin(), out.end(), k) != out.end(); };
  std::vector<int> nested;
  for (int i = 0; i < program_.switches(); ++i) {
    const std::vector<int>& outer = program_.dependents(i);
    if (std::any_of(outer.begin(), outer.end(), stands)) nested.push_back(i);
  }
  out.insert(out.end(), nested.begin(), nested.end());
  std::sort(out.begin(), out.end());
  out.erase(std::unique(out.begin(), out.end()), out.end());
  std::erase_if(out, [&](int i) {
    if (program_.nested(i)) return false;
    const std::vector<Expr> symbols = symbols_in(std::span(&program_.model().form.switches[at(i)].surface, 1));
    return std::none_of(symbols.begin(), symbols.end(), [&](const Expr& s) {
      return s.is_symbol(SymbolKind::state) && place_[at(s.symbol().index)] >= 0;
    });
  });
  return out;
}

void ImpulsePath::sort_switches() {
  sigma_.assign(at(program_.switches()), 0.0);
  letters_ = open_.switches;
  kinks_ = switches_inside();
  for (const int i : kinks_) {
    if (letters_[at(i)] != '-') letters_[at(i)] = '+';
  }
  stand(before_);
  std::vector<int> sets;
  for (const int i : kinks_) {
    if (jumps_at(i)) sets.push_back(i);
  }
  std::erase_if(kinks_, [&](int i) { return std::find(sets.begin(), sets.end(), i) != sets.end(); });
  sets_ = std::move(sets);
  for (const int i : sets_) {
    Mat& rows = stands_in_.emplace_back(Mat::Zero(before_.size(), before_.size()));
    for (const int j : contacts_) {
      for (const Assignment& a : program_.model().form.gaps[at(j)].direction) {
        const std::vector<Expr> symbols = symbols_in(std::span(&a.value, 1));
        const bool stands = std::any_of(symbols.begin(), symbols.end(), [&](const Expr& e) {
          return e.is_symbol(SymbolKind::sigma) && e.symbol().index == i;
        });
        if (stands) rows(place_[at(a.state)], place_[at(a.state)]) = 1;
      }
    }
  }
  stand(before_);
  first_letters_ = letters_;
  undecided_ = sets_multiply();
  mode_.switches = letters_;
  for (const int i : sets_) mode_.switches[at(i)] = '0';
}

void ImpulsePath::keep_sets() {
  for (const int i : sets_) letters_[at(i)] = open_.switches[at(i)];
  sets_.clear();
  stand(before_);
  first_letters_ = letters_;
  mode_.switches = letters_;
}

/// True if directions are not the sum of what each set does: D(-,-) is not D(-,+) + D(+,-) - D(+,+).
bool ImpulsePath::sets_multiply() {
  const auto flipped = [&](std::initializer_list<int> which) {
    std::string letters = letters_;
    for (const int i : which) letters[at(i)] = letters[at(i)] == '+' ? '-' : '+';
    return directions(values(letters, before_));
  };
  const Mat own = flipped({});
  for (size_t a = 0; a < sets_.size(); ++a) {
    for (size_t b = 0; b < a; ++b) {
      const Mat first = flipped({sets_[a]}), second = flipped({sets_[b]});
      const Mat off = flipped({sets_[a], sets_[b]}) + own - first - second;
      const double size = own.max_abs() + first.max_abs() + second.max_abs();
      if (std::isfinite(size) && !(off.max_abs() <= continuous_direction * size)) return true;
    }
  }
  return false;
}

Vec ImpulsePath::surface_slope(const Piece& piece, int row) const {
  Vec out = Vec::Zero(before_.size());
  for (const SlopeEntry& e : piece.tape->event.by_state) {
    if (e.row == row && place_[at(e.column)] >= 0) out[place_[at(e.column)]] = output(piece, e.output);
  }
  return out;
}

/// A point of the surface that impulses can lead to.
std::optional<Vec> ImpulsePath::to_surface(int i, Vec y) {
  const int row = program_.event_surface(i);
  for (int round = 0; round < 30; ++round) {
    const Piece& here = stand(y);
    const double h = output(here, row);
    const Vec slope = surface_slope(here, row);
    const double square = slope.squaredNorm(), size = slope.cwiseAbs().dot(y.cwiseAbs());
    if (!(square > 0) || !std::isfinite(square) || !std::isfinite(h)) return std::nullopt;
    y -= slope * (h / square);
    if (std::abs(h) <= 8 * eps * size) return y;
  }
  return y;
}

/// True if the directions jump at the surface. One that impulses cannot move is a number here: no set.
bool ImpulsePath::jumps_at(int i) {
  const std::string before = letters_;
  const double size = std::max(before_.max_abs(), 1e-3);
  std::optional<Vec> there;
  for (int attempt = 0; attempt < 4 && !there; ++attempt) {  // at hypot(0, 0) a surface has no slope
    Vec y = before_;
    for (Index a = 0; attempt > 0 && a < y.size(); ++a) y[a] += size * std::sin(attempt * (1.0 + double(a)));
    there = to_surface(i, y);
  }
  letters_ = before;
  if (!there) return false;
  stand(*there);
  std::string up = letters_, down = letters_;
  up[at(i)] = '+';
  down[at(i)] = '-';
  const Mat above = directions(values(up, *there));
  const Mat below = directions(values(down, *there));
  letters_ = before;
  const double gap = Mat(above - below).max_abs();
  return !(gap <= continuous_direction * std::max(above.max_abs(), below.max_abs()));
}

std::vector<std::pair<int, char>> ImpulsePath::kinks() const {
  std::vector<std::pair<int, char>> out;
  for (const int i : kinks_) {
    const double h = output(*standing_, program_.event_surface(i));
    out.emplace_back(i, h > 0 ? '+' : h < 0 ? '-' : '0');
  }
  return out;
}

// ---- the path ------------------------------------------------------------------------------------------------------

/// Z_i = length sum_k A_ik F(y + Z_k) by Newton's method.
std::optional<ImpulsePath::Step> ImpulsePath::solve_step(const Vec& y, double length) {
  const Radau& method = radau(stages);
  const Index d = y.size();
  Vec z = Vec::Zero(stages * d);
  const std::string letters = letters_;
  double last = HUGE_VAL;
  for (int round = 0; round < 20; ++round) {
    Mat J = Mat::Identity(stages * d, stages * d);
    Vec r = z;
    Vec size = sizes(y, Vec::Zero(d));
    letters_ = letters;
    for (Index k = 0; k < stages; ++k) {
      const Vec here = y + z.segment(k * d, d);
      const Rates there = rates(here, false);
      const Vec rate = there.D * impulse_;
      const Mat& A = there.slope;
      if (!rate.allFinite() || !A.allFinite()) return std::nullopt;
      size = size.cwiseMax(sizes(here, length * rate));
      for (Index i = 0; i < stages; ++i) {
        const double a = length * method.A[ux(i * stages + k)];
        r.segment(i * d, d) -= a * rate;
        J.block(i * d, k * d, d, d) -= a * A;
      }
    }
    const Vec step = Lu(J).solve(r);
    if (!step.allFinite()) return std::nullopt;
    z -= step;
    double change = 0;
    for (Index k = 0; k < stages; ++k) change = std::max(change, relative(Vec(step.segment(k * d, d)), size));
    if (change <= 16 * eps || (change >= last && change <= impulse_path_error / 16)) break;
    if (round == 19 || (round > 5 && change > 0.5 * last && last < 1)) return std::nullopt;
    last = change;
  }
  Step out{.length = length, .stages = {}};
  for (Index k = 0; k < stages; ++k) out.stages.push_back(y + z.segment(k * d, d));
  return out;
}

/// The step's own equations, linearised: Z_i = Z + length sum_k A_ik (F_x Z_k + B_k).
bool ImpulsePath::carry_step(const Step& step, Mat& z, const Forcing& forcing, double* work) {
  const Radau& method = radau(stages);
  const Index d = before_.size();
  Mat J = Mat::Identity(stages * d, stages * d), r(stages * d, z.cols());
  for (Index i = 0; i < stages; ++i) r.block(i * d, 0, d, z.cols()) = z;
  for (Index k = 0; k < stages; ++k) {
    const Vec& here = step.stages[ux(k)];
    const Rates there = rates(here, true);
    const Piece& piece = *standing_;
    const Mat& A = there.slope;
    Mat B;
    if (forcing) {
      const Mat own = B = forcing(*piece.jet, *piece.tape);
      for (const Part& p : parts(here, false))
        B += p.share * (p.rows * (own - mean(p, [&](Piece& q) { return forcing(*q.jet, *q.tape); })));
      values(letters_, here);
    } else {
      B.resize(d, z.cols());
      B << there.D, there.by_sigma;
    }
    if (!A.allFinite() || !B.allFinite()) return false;
    for (Index i = 0; i < stages; ++i) {
      const double a = step.length * method.A[ux(i * stages + k)];
      J.block(i * d, k * d, d, d) -= a * A;
      r.block(i * d, 0, d, z.cols()) += a * B;
    }
    if (!work) continue;
    const double weight = step.length * method.A[ux((stages - 1) * stages + k)];
    for (size_t j = 0; j < contacts_.size(); ++j) {
      const int row = piece.tape->rungs[at(program_.switches() + contacts_[j])][1];
      *work += weight * impulse_[ix(j)] * output(piece, row);
    }
  }
  z = Lu(J).solve_columns(r).bottomRows(d);
  return z.allFinite();
}

/// From y over s = 0..1; each step that holds is told.
bool ImpulsePath::walk(Vec& y, const std::function<bool(const Step&)>& passed) {
  constexpr int most_steps = 20'000;
  double s = 0, h = 1;
  for (int count = 0; s < 1 && count < most_steps; ++count) {
    h = std::min(h, 1 - s);
    const std::string letters = letters_;
    const auto whole = solve_step(y, h);
    const auto first = whole ? solve_step(y, h / 2) : std::nullopt;
    const auto second = first ? solve_step(first->stages.back(), h / 2) : std::nullopt;
    double error = HUGE_VAL;
    if (second) {
      const Vec& end = second->stages.back();
      error = relative(end - whole->stages.back(), sizes(y, end - y)) / impulse_path_error;
    }
    if (!(error <= 1)) {
      letters_ = letters;
      h *= std::isfinite(error) ? std::clamp(0.8 * std::pow(error, -0.1), 0.1, 0.5) : 0.25;
      if (h < impulse_path_error * 1e-3) return false;
      continue;
    }
    letters_ = letters;
    if (!passed(*first) || !passed(*second)) return false;
    y = second->stages.back();
    s = h >= 1 - s ? 1 : s + h;
    h *= std::clamp(0.8 * std::pow(std::max(error, 1e-10), -0.1), 0.5, 5.0);
  }
  return s >= 1;
}

std::optional<ImpulsePath::End> ImpulsePath::follow(const Vec& impulse, const Vec& sigma) {
  impulse_ = impulse;
  for (size_t b = 0; b < sets_.size(); ++b) sigma_[at(sets_[b])] = sigma[ix(b)];
  letters_ = first_letters_;
  Vec y = before_;
  Mat z = Mat::Zero(y.size(), ix(contacts_.size() + sets_.size()));
  double work = 0;
  const auto passed = [&](const Step& step) { return carry_step(step, z, {}, &work); };
  if (!walk(y, passed)) {
    lost_ = true;
    return std::nullopt;
  }
  End out = read(y, z);
  out.normal_work = work;
  return out;
}

ImpulsePath::End ImpulsePath::read(const Vec& y, const Mat& z) {
  End out;
  const Index n = ix(contacts_.size()), s = ix(sets_.size());
  const Piece& piece = stand(y);
  out.change = Vec::Zero(ix(x_.size()));
  for (size_t a = 0; a < moved_.size(); ++a) out.change[moved_[a]] = y[ix(a)] - before_[ix(a)];
  out.gap_rate.resize(n);
  out.surface.resize(s);
  Mat slopes(n + s, y.size());
  const auto put = [&](Index k, int row, double& value) {
    value = output(piece, row);
    slopes.row(k) = surface_slope(piece, row).transpose();
  };
  for (Index j = 0; j < n; ++j)
    put(j, piece.tape->rungs[at(program_.switches() + contacts_[ux(j)])][1], out.gap_rate[j]);
  for (Index b = 0; b < s; ++b) put(n + b, program_.event_surface(sets_[ux(b)]), out.surface[b]);
  const Mat all = slopes * z;
  out.by_unknown = z;
  out.gap_by_impulse = all.topLeftCorner(n, n);
  out.gap_by_sigma = all.topRightCorner(n, s);
  out.surface_by_impulse = all.bottomLeftCorner(s, n);
  out.surface_by_sigma = all.bottomRightCorner(s, s);
  return out;
}

bool ImpulsePath::carry(Mat& z, const Forcing& forcing) {
  letters_ = first_letters_;
  Vec y = before_;
  const auto passed = [&](const Step& step) { return carry_step(step, z, forcing, nullptr); };
  if (!walk(y, passed)) return false;
  stand(y);
  return true;
}

}  // namespace saltus
