// An independent, slow and exact reference for piecewise-linear systems with additive or multiplied switches:
//
//   x' = sum over terms of (product of the term's sigmas) * M * X,     X = (x, sin wt, cos wt, 1),    h_i = c_i . X
//
// In every mode, also while sliding, X' = A X: the flow is a matrix exponential and everything watched is a row times
// X. Events are found by fine sampling and bisection, modes by trying all assignments of + - 0. Situations in which
// rounding would decide are recognised and given up.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include <Eigen/Dense>

namespace saltus::physics {

struct LinearTerm {
  unsigned switches = 0;  ///< bit i: multiplied by sigma_i
  Eigen::MatrixXd M;
};

struct LinearSurface {
  Eigen::RowVectorXd c;
  double hold = 1;
};

struct LinearSystem {
  int states = 0;
  double w = 1;
  std::vector<LinearTerm> terms;  ///< including the rotation of (sin, cos)
  std::vector<LinearSurface> surfaces;
  Eigen::VectorXd start;  ///< X at t = 0
};

struct LinearEvent {
  double t;
  std::string kind, before, after;
};

struct LinearRun {
  std::string degenerate;  ///< why the reference gives up, or empty
  std::string start_mode;
  std::vector<LinearEvent> events;
  Eigen::VectorXd end;
};

class LinearReference {
 public:
  LinearReference(const LinearSystem& system, double until) : s_(system), until_(until) {}

  LinearRun run() {
    LinearRun result;
    try {
      go(result);
    } catch (const Degenerate& d) {
      result.degenerate = d.why;
    }
    return result;
  }

 private:
  static constexpr double small_ = 1e-7;
  static constexpr double dt_ = 0.01;

  struct Degenerate {
    std::string why;
  };
  struct Flow {
    Eigen::MatrixXd A;
    std::vector<Eigen::RowVectorXd> sigma;  // per switch: its value is this row times X
  };
  struct Watched {
    Eigen::RowVectorXd row;  // positive as long as the mode lasts
    int surface;
    char exit;  // side to which sliding is left, or 0
  };

  // A flow for the mode, nothing if its sigmas are not determined. X only serves to judge sizes.
  std::optional<Flow> flow(const std::string& mode, const Eigen::VectorXd& X) const {
    const auto N = s_.start.size();
    const size_t m = mode.size();
    Flow out{Eigen::MatrixXd::Zero(N, N), std::vector<Eigen::RowVectorXd>(m, Eigen::RowVectorXd::Zero(N))};
    std::vector<int> slid;
    for (size_t i = 0; i < m; ++i) {
      if (mode[i] == '0') slid.push_back(static_cast<int>(i));
    }
    std::vector<Eigen::MatrixXd> D(slid.size(), Eigen::MatrixXd::Zero(N, N));
    Eigen::MatrixXd both = Eigen::MatrixXd::Zero(N, N);
    for (const LinearTerm& term : s_.terms) {
      double factor = 1;
      std::vector<size_t> unknown;
      for (size_t i = 0; i < m; ++i) {
        if (!(term.switches >> i & 1)) continue;
        if (mode[i] == '0')
          unknown.push_back(
              static_cast<size_t>(std::find(slid.begin(), slid.end(), static_cast<int>(i)) - slid.begin()));
        else if (mode[i] == '-')
          factor = -factor;
      }
      if (unknown.empty())
        out.A += factor * term.M;
      else if (unknown.size() == 1)
        D[unknown[0]] += factor * term.M;
      else if (slid.size() == 2)
        both += factor * term.M;
      else
        throw Degenerate{"product of sliding switches"};
    }
    if (slid.empty()) return out;
    if (both.norm() > 0) {
      if (bilinear_has_root(slid, out.A * X, D[0] * X, D[1] * X, both * X))
        throw Degenerate{"product of sliding switches"};
      return std::nullopt;
    }
    const auto k = static_cast<Eigen::Index>(slid.size());
    Eigen::MatrixXd G(k, k), R(k, N);
    for (Eigen::Index i = 0; i < k; ++i) {
      const auto& c = s_.surfaces[static_cast<size_t>(slid[static_cast<size_t>(i)])].c;
      R.row(i) = c * out.A;
      for (Eigen::Index j = 0; j < k; ++j) G(i, j) = c.dot(D[static_cast<size_t>(j)] * X);
    }
    Eigen::FullPivLU<Eigen::MatrixXd> lu(G);
    lu.setThreshold(1e-9);
    if (!lu.isInvertible() || G.cwiseAbs().maxCoeff() < 1e-9) return std::nullopt;
    const Eigen::MatrixXd rows = -lu.solve(R);
    for (Eigen::Index j = 0; j < k; ++j) {
      const auto& d = D[static_cast<size_t>(j)];
      if (d.leftCols(N - 1).norm() > 0) throw Degenerate{"slides on a surface whose strength varies"};
      out.sigma[static_cast<size_t>(slid[static_cast<size_t>(j)])] = rows.row(j);
    }
    for (Eigen::Index j = 0; j < k; ++j) out.A += D[static_cast<size_t>(j)].col(N - 1) * rows.row(j);
    return out;
  }

  // Whether a + b u + c v + d u v = 0 (two components) has a solution with u, v in [-1, 1].
  bool bilinear_has_root(const std::vector<int>& slid, const Eigen::VectorXd& a, const Eigen::VectorXd& b,
                         const Eigen::VectorXd& c, const Eigen::VectorXd& d) const {
    double q[2][4];
    for (size_t i = 0; i < 2; ++i) {
      const auto& n = s_.surfaces[static_cast<size_t>(slid[i])].c;
      q[i][0] = n.dot(a), q[i][1] = n.dot(b), q[i][2] = n.dot(c), q[i][3] = n.dot(d);
    }
    // v = -(a0 + b0 u)/(c0 + d0 u) in the second: a quadratic in u
    const double A = q[1][1] * q[0][3] - q[1][3] * q[0][1];
    const double B = q[1][0] * q[0][3] + q[1][1] * q[0][2] - q[1][2] * q[0][1] - q[1][3] * q[0][0];
    const double C = q[1][0] * q[0][2] - q[1][2] * q[0][0];
    std::vector<double> roots;
    const double disc = B * B - 4 * A * C;
    if (std::abs(A) < 1e-12) {
      if (std::abs(B) < 1e-12) throw Degenerate{"product of sliding switches"};
      roots = {-C / B};
    } else if (disc >= 0) {
      roots = {(-B + std::sqrt(disc)) / (2 * A), (-B - std::sqrt(disc)) / (2 * A)};
    }
    for (const double u : roots) {
      const double v = -(q[0][0] + q[0][1] * u) / (q[0][2] + q[0][3] * u);
      if (std::abs(u) < 1 + small_ && !(std::abs(v) > 1 + small_)) return true;
    }
    return false;
  }

  enum class Verdict { no, unsure, yes };

  Verdict judge(const std::string& mode, const std::vector<int>& Z, const Eigen::VectorXd& X, int exiting) const {
    const auto f = flow(mode, X);
    if (!f) return Verdict::no;
    Verdict verdict = Verdict::yes;
    const auto meet = [&](double margin) {
      if (margin < -small_)
        verdict = Verdict::no;
      else if (margin < small_ && verdict == Verdict::yes)
        verdict = Verdict::unsure;
    };
    const Eigen::VectorXd X1 = f->A * X;
    for (const int i : Z) {
      const char side = mode[static_cast<size_t>(i)];
      const LinearSurface& h = s_.surfaces[static_cast<size_t>(i)];
      if (side == '0') {
        const double sigma = f->sigma[static_cast<size_t>(i)].dot(X);
        const double margin = h.hold - std::abs(sigma);
        if (i == exiting && std::abs(margin) < small_)
          meet(sigma > 0 ? -f->sigma[static_cast<size_t>(i)].dot(X1) : f->sigma[static_cast<size_t>(i)].dot(X1));
        else
          meet(margin);
      } else {
        const double sign = side == '+' ? 1 : -1;
        const double rate = h.c.dot(X1);
        meet(sign * (i == exiting && std::abs(rate) < small_ ? h.c.dot(f->A * X1) : rate));
      }
      if (verdict == Verdict::no) return verdict;
    }
    return verdict;
  }

  std::string decide(std::string mode, const std::vector<int>& Z, const Eigen::VectorXd& X, int exiting) const {
    std::vector<std::string> consistent;
    long assignments = 1;
    for (size_t i = 0; i < Z.size(); ++i) assignments *= 3;
    for (long code = 0; code < assignments; ++code) {
      long rest = code;
      for (const int i : Z) mode[static_cast<size_t>(i)] = "+-0"[rest % 3], rest /= 3;
      const Verdict v = judge(mode, Z, X, exiting);
      if (v == Verdict::unsure) throw Degenerate{"a mode on the edge"};
      if (v == Verdict::yes) consistent.push_back(mode);
    }
    if (consistent.empty()) throw Degenerate{"no consistent mode"};
    if (consistent.size() == 1) return consistent[0];
    return most_held(consistent);
  }

  // Where sticking and passing are both consistent, sticking wins.
  std::string most_held(const std::vector<std::string>& modes) const {
    int best = -1, ties = 0;
    std::string choice;
    for (const std::string& mode : modes) {
      int held = 0;
      for (size_t i = 0; i < mode.size(); ++i) held += mode[i] == '0' && s_.surfaces[i].hold > 1;
      if (held > best)
        best = held, ties = 0, choice = mode;
      else if (held == best)
        ++ties;
    }
    if (ties > 0 || best == 0) throw Degenerate{"several consistent modes"};
    return choice;
  }

  static Eigen::VectorXd advance(const Eigen::MatrixXd& A, const Eigen::VectorXd& X, double tau) {
    Eigen::VectorXd sum = X, term = X;
    for (int k = 1; k < 60; ++k) {
      term = A * term * (tau / k);
      sum += term;
      if (term.norm() < 1e-18 * sum.norm()) break;
    }
    return sum;
  }

  // The first zero of a watched row on a stretch from X0 to X1, where its slope changes sign at most once.
  static std::optional<double> zero(const Watched& w, const Eigen::MatrixXd& A, const Eigen::VectorXd& X0,
                                    const Eigen::VectorXd& X1, double length) {
    const auto value = [&](double tau) { return w.row.dot(advance(A, X0, tau)); };
    const auto slope = [&](double tau) { return w.row.dot(A * advance(A, X0, tau)); };
    double end = length;
    if (w.row.dot(X1) > 0) {
      const Eigen::RowVectorXd rate = w.row * A;
      if (!(rate.dot(X0) < 0 && rate.dot(X1) > 0)) return std::nullopt;
      double a = 0, b = length;
      while (b - a > 1e-14 * length) {
        const double c = (a + b) / 2;
        (slope(c) < 0 ? a : b) = c;
      }
      const double least = value(b);
      if (std::abs(least) < 1e-9) throw Degenerate{"almost a touch"};
      if (least > 0) return std::nullopt;
      end = b;
    }
    double a = 0, b = end;
    while (b - a > 1e-15 + 1e-15 * length) {
      const double c = (a + b) / 2;
      if (c == a || c == b) break;
      (value(c) > 0 ? a : b) = c;
    }
    return b;
  }

  void go(LinearRun& out) {
    Eigen::VectorXd X = s_.start;
    std::string mode(s_.surfaces.size(), '+');
    std::vector<int> Z;
    for (size_t i = 0; i < mode.size(); ++i) {
      const double h = s_.surfaces[i].c.dot(X);
      if (std::abs(h) < 1e-13)
        Z.push_back(static_cast<int>(i));
      else if (std::abs(h) < small_)
        throw Degenerate{"starts almost on a surface"};
      mode[i] = h > 0 ? '+' : '-';
    }
    if (!Z.empty()) mode = decide(mode, Z, X, -1);
    out.start_mode = mode;

    double t = 0, last_event = -1;
    while (t < until_) {
      const auto f = flow(mode, X);
      if (!f) throw Degenerate{"mode without flow"};
      std::vector<Watched> watched;
      for (size_t i = 0; i < mode.size(); ++i) {
        const LinearSurface& h = s_.surfaces[i];
        if (mode[i] != '0') {
          watched.push_back({mode[i] == '+' ? h.c : Eigen::RowVectorXd(-h.c), static_cast<int>(i), 0});
        } else {
          Eigen::RowVectorXd bound = Eigen::RowVectorXd::Zero(X.size());
          bound(X.size() - 1) = h.hold;
          watched.push_back({bound - f->sigma[i], static_cast<int>(i), '+'});
          watched.push_back({bound + f->sigma[i], static_cast<int>(i), '-'});
        }
      }
      // The first stretch is sampled geometrically, so that what starts at zero is seen to leave it.
      double length = dt_ * std::pow(2.0, -10);
      bool first = true;
      std::optional<double> event;
      const Watched* by = nullptr;
      while (t < until_ && !event) {
        const double step = std::min(length, until_ - t);
        const Eigen::VectorXd X2 = advance(f->A, X, step);
        double second = std::numeric_limits<double>::infinity();
        for (const Watched& w : watched) {
          if (first) {
            if (w.row.dot(X2) <= 0) throw Degenerate{"does not leave a surface"};
            continue;
          }
          const auto z = zero(w, f->A, X, X2, step);
          if (!z) continue;
          if (!event || *z < *event) {
            second = event.value_or(second);
            event = z, by = &w;
          } else {
            second = std::min(second, *z);
          }
        }
        if (event) {
          if (second - *event < small_) throw Degenerate{"two events at once"};
          if (step - *event < small_) {  // the next stretch may hold another event at almost the same time
            const Eigen::VectorXd later = advance(f->A, X, *event + small_);
            for (const Watched& w : watched) {
              if (&w != by && w.row.dot(later) <= 0) throw Degenerate{"two events at once"};
            }
          }
          X = advance(f->A, X, *event);
          t += *event;
        } else {
          X = X2;
          t += step;
        }
        first = false;
        if (length < dt_) length *= 2;
        if (X.norm() > 1e4) throw Degenerate{"grows"};
      }
      if (!event) break;
      if (t > until_ - small_) throw Degenerate{"ends on an event"};
      if (std::abs(by->row.dot(f->A * X)) < 1e-5) throw Degenerate{"touches"};
      if (t - last_event < 1e-6) throw Degenerate{"accumulation"};
      last_event = t;
      if (out.events.size() > 300) throw Degenerate{"too many events"};

      std::vector<int> at{by->surface};
      for (size_t i = 0; i < mode.size(); ++i) {
        if (mode[i] == '0' && static_cast<int>(i) != by->surface) at.push_back(static_cast<int>(i));
      }
      const std::string after = decide(mode, at, X, by->exit ? by->surface : -1);
      record(out, t, mode, after);
      mode = after;
    }
    out.end = X;
  }

  static void record(LinearRun& out, double t, const std::string& before, const std::string& after) {
    std::string kind;
    int changed = 0;
    for (size_t i = 0; i < before.size(); ++i) {
      if (before[i] == after[i]) continue;
      ++changed;
      kind = after[i] == '0' ? "slide" : before[i] == '0' ? "leave" : "cross";
    }
    if (changed == 0) throw Degenerate{"an event that changes nothing"};
    out.events.push_back({t, changed > 1 ? "mode" : kind, before, after});
  }

  const LinearSystem& s_;
  double until_;
};

}  // namespace saltus::physics
