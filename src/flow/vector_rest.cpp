#include "flow/vector_rest.hpp"

#include <algorithm>
#include <cmath>

#include "base/index.hpp"
#include "flow/thresholds.hpp"

namespace saltus {
namespace {

/// h of all near switches, then the way of all states, then time: by ds.
class FrozenFlow {
 public:
  FrozenFlow(Series& series, const Moment& now, std::span<const int> near, double direction)
      : series_(series), program_(series.program()), now_(now), near_(near.begin(), near.end()), direction_(direction) {
    Mode rest = now.mode;
    for (const int v : near_) {
      for (const int part : program_.parts(v)) rest.switches[at(part)] = '0';
    }
    series.set_mode(rest);
    unknowns_.assign(at(program_.unknowns()), 0.0);
  }

  bool start(Vec& z) {
    if (series_.evaluate(now_.x, now_.t(), now_.counters) == SeriesStatus::undefined) return false;
    std::vector<double> h;
    for (const int v : near_) {
      for (const int part : program_.parts(v)) {
        h.push_back(series_.surface(part)[0]);
        parts_.push_back(part);
      }
    }
    for (int u = 0; u < program_.unknowns(); ++u) unknowns_[at(u)] = series_.unknown(u)[0];
    z = Vec::Zero(ix(h.size() + now_.x.size() + 1));
    for (size_t i = 0; i < h.size(); ++i) z[ix(i)] = h[i];
    return true;
  }

  double length(const Vec& z, size_t k) const {
    Index from = 0;
    for (size_t i = 0; i < k; ++i) from += ix(program_.parts(near_[i]).size());
    return z.segment(from, ix(program_.parts(near_[k]).size())).norm();
  }
  double least(const Vec& z) const {
    double r = HUGE_VAL;
    for (size_t k = 0; k < near_.size(); ++k) r = std::min(r, length(z, k));
    return r;
  }

  /// dz/ds; `rate`: how fast h changes in time, the largest.
  bool slope(const Vec& z, Vec& out, double& rate) {
    Index from = 0;
    for (size_t k = 0; k < near_.size(); ++k) {
      const double r = length(z, k);
      for (const int part : program_.parts(near_[k])) unknowns_[at(part)] = r > 0 ? z[from] / r : 0.0, ++from;
    }
    Vec r;
    Mat S;
    const std::vector<int>& active = series_.active();
    if (!series_.residuals_at(now_.x, now_.t(), now_.counters, unknowns_, r, S)) return false;
    if (active.size() > parts_.size() && !solve_others(r, S)) return false;
    out.resize(z.size());
    const double pace = least(z) * direction_;
    rate = 0;
    for (size_t i = 0; i < parts_.size(); ++i) {
      const auto place = std::find(active.begin(), active.end(), parts_[i]) - active.begin();
      out[ix(i)] = pace * r[place];
      rate = std::max(rate, std::abs(r[place]));
    }
    for (size_t i = 0; i < now_.x.size(); ++i) out[ix(parts_.size() + i)] = pace * series_.rate(static_cast<int>(i))[0];
    out[out.size() - 1] = pace;
    return out.allFinite();
  }

  size_t components() const { return parts_.size(); }

 private:
  /// Contacts, joints and what slides, for directions that are given.
  bool solve_others(Vec& r, Mat& S) {
    const std::vector<int>& active = series_.active();
    std::vector<int> other;
    for (size_t a = 0; a < active.size(); ++a) {
      if (std::find(parts_.begin(), parts_.end(), active[a]) == parts_.end()) other.push_back(static_cast<int>(a));
    }
    Mat own(ix(other.size()), ix(other.size()));
    Vec rest(ix(other.size()));
    for (size_t i = 0; i < other.size(); ++i) {
      rest[ix(i)] = r[other[i]];
      for (size_t j = 0; j < other.size(); ++j) own(ix(i), ix(j)) = S(other[i], other[j]);
    }
    const Vec step = Orthogonal(own, independent_column).solve(rest);
    for (size_t i = 0; i < other.size(); ++i) unknowns_[at(active[at(other[i])])] -= step[ix(i)];
    return series_.residuals_at(now_.x, now_.t(), now_.counters, unknowns_, r, S);
  }

  Series& series_;
  const Program& program_;
  const Moment& now_;
  std::vector<int> near_, parts_;
  double direction_;
  std::vector<double> unknowns_;
};

/// The classical rule of order four.
bool step_on(FrozenFlow& flow, Vec& z, double ds) {
  Vec a, b, c, d;
  double rate = 0;
  if (!flow.slope(z, a, rate) || !flow.slope(z + ds / 2 * a, b, rate) || !flow.slope(z + ds / 2 * b, c, rate) ||
      !flow.slope(z + ds * c, d, rate))
    return false;
  z += ds / 6 * (a + 2 * b + 2 * c + d);
  return z.allFinite();
}

/// The only switch near rest falls along a direction that does not turn any more.
bool settled(FrozenFlow& flow, size_t near, const Vec& z) {
  constexpr double turning = 1e-9;
  Vec slope;
  double rate = 0;
  if (near != 1 || !flow.slope(z, slope, rate)) return false;
  const Index d = ix(flow.components());
  const Vec h = z.segment(0, d), change = slope.segment(0, d);
  const double falls = h.dot(change) / h.squaredNorm();
  return falls < 0 && (change - falls * h).norm() <= turning * std::abs(falls) * h.norm();
}

}  // namespace

std::optional<FrozenEnd> follow_to_rest(Series& series, const Moment& now, std::span<const int> near,
                                        double direction) {
  constexpr int most = 20'000;
  constexpr double share = 0.04, arrived = 1e-6, together = 1e-3;  // of a turn per step; of |h| at first
  FrozenFlow flow(series, now, near, direction);
  Vec z, slope;
  if (!flow.start(z)) return std::nullopt;
  std::vector<double> first;
  for (size_t k = 0; k < near.size(); ++k) first.push_back(flow.length(z, k));
  const double begin = flow.least(z);
  double fastest = 0;
  bool fell = false;
  for (int i = 0; i < most; ++i) {
    double rate = 0;
    if (!flow.slope(z, slope, rate) || !(rate > 0)) return std::nullopt;
    fastest = std::max(fastest, rate);
    const double before = flow.least(z);
    if (!step_on(flow, z, share / fastest)) return std::nullopt;
    const double r = flow.least(z);
    fell = fell || r < before;
    FrozenEnd end{.time = std::abs(z[z.size() - 1])};
    size_t nearest = 0;
    for (size_t k = 0; k < near.size(); ++k) {
      if (flow.length(z, k) / first[k] < flow.length(z, nearest) / first[nearest]) nearest = k;
    }
    const bool rests = flow.length(z, nearest) < arrived * first[nearest] || settled(flow, near.size(), z);
    if (!rests && !(r > before && r >= begin)) continue;
    if (rests) {  // what is left, at the pace of now
      if (!flow.slope(z, slope, rate)) return std::nullopt;
      Index from = 0;
      double falls = 0;
      for (size_t k = 0; k < near.size(); ++k) {
        const Index d = ix(series.program().parts(near[k]).size());
        if (k == nearest) falls = -z.segment(from, d).dot(slope.segment(from, d)) / z.segment(from, d).squaredNorm();
        if (flow.length(z, k) < together * arrived * first[k] || k == nearest ||
            flow.length(z, k) < together * first[k])
          end.rests.push_back(near[k]);
        from += d;
      }
      if (falls > 0) z += slope / falls;
      end.time = std::abs(z[z.size() - 1]);
    }
    end.x = now.x;
    for (size_t s = 0; s < end.x.size(); ++s) end.x[s] += z[ix(flow.components() + s)];
    return end;
  }
  return std::nullopt;
}

}  // namespace saltus
