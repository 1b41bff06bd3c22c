#include "analysis/exponents.hpp"

#include <algorithm>
#include <cmath>
#include <optional>

#include "flow/variation.hpp"

namespace saltus {
namespace {

/// A direction shorter than this after an event, of those that were of length one before, is forgotten.
constexpr double forgotten = 1e-10;
/// Tangents are made orthonormal again before they are this much longer or shorter.
constexpr double longest = 1e3;
constexpr size_t most_blocks = 64;

/// Sums of logarithms over blocks of equal time; when there are too many, two become one.
class Blocks {
 public:
  Blocks(size_t exponents, double from, double length) : from_(from), length_(length), sums_(exponents) {}

  void add(double t, const std::vector<double>& logs) {
    const double elapsed = std::abs(t - from_);
    while (elapsed >= length_ * static_cast<double>(most_blocks)) merge();
    const size_t block = static_cast<size_t>(elapsed / length_);
    for (size_t k = 0; k < logs.size(); ++k) {
      if (sums_[k].size() <= block) sums_[k].resize(block + 1, 0.0);
      sums_[k][block] += logs[k];
    }
  }
  void drop(size_t exponents) { sums_.resize(exponents); }
  double length() const { return length_; }
  const std::vector<double>& sums(size_t k) const { return sums_[k]; }

  /// Standard error of the mean rate: blocks are joined until neighbours no longer know each other.
  double error(size_t k, double time) const {
    std::vector<double> rates;
    const size_t whole = static_cast<size_t>(time / length_ + 1e-9);
    for (size_t b = 0; b < std::min(whole, sums_[k].size()); ++b) rates.push_back(sums_[k][b] / length_);
    double largest = 0;
    while (rates.size() >= 8) {
      const double n = static_cast<double>(rates.size());
      double mean = 0, square = 0;
      for (const double r : rates) mean += r / n;
      for (const double r : rates) square += (r - mean) * (r - mean);
      largest = std::max(largest, std::sqrt(square / (n - 1) / n));
      std::vector<double> joined;
      for (size_t b = 0; b + 1 < rates.size(); b += 2) joined.push_back(0.5 * (rates[b] + rates[b + 1]));
      rates = std::move(joined);
    }
    return largest;
  }

 private:
  void merge() {
    length_ *= 2;
    for (std::vector<double>& s : sums_) {
      std::vector<double> joined((s.size() + 1) / 2, 0.0);
      for (size_t b = 0; b < s.size(); ++b) joined[b / 2] += s[b];
      s = std::move(joined);
    }
  }

  double from_, length_;
  std::vector<std::vector<double>> sums_;
};

class Spectrum {
 public:
  Spectrum(const Program& program, const ExponentOptions& options)
      : options_(options), variation_(program, options.run), n_(static_cast<size_t>(program.states())) {
    const Eigen::Index n = program.states();
    variation_.begin(Mat::Identity(n, n));
    sums_.assign(n_, 0.0);
    running_.resize(n_);
    const double length = std::abs(options.run.until - options.run.from);
    transient_ = options.run.from + (options.run.until - options.run.from) * (options.open ? 0.0 : 0.1);
    if (options.open) transient_ = HUGE_VAL;  // set after some steps
    blocks_.emplace(n_, transient_, std::max(length * 0.9 / static_cast<double>(most_blocks), 1e-300));
  }

  void piece(const Piece& piece, const Arc& arc) {
    now_ = piece.start + piece.length;
    variation_.along(piece, arc);
    const Mat& x = variation_.tangents();
    const double largest = x.colwise().norm().maxCoeff(), smallest = x.colwise().norm().minCoeff();
    if (!(largest < longest) || !(smallest > 1 / longest) || ++since_ >= 16 || passes_transient())
      orthonormalise(false);
  }

  void transition(const Transition& e) {
    orthonormalise(false);
    variation_.through(e);
    orthonormalise(true);
  }

  /// Whether an open run has seen enough.
  bool enough() const {
    if (!options_.open || !started_ || taken_ % 64 != 0) return false;
    const double time = now_ - transient_;
    double largest = 0, error = 0;
    for (size_t k = 0; k < sums_.size(); ++k) {
      largest = std::max(largest, std::abs(sums_[k] / time));
      error = std::max(error, blocks_->error(k, time));
    }
    return blocks_->sums(0).size() >= most_blocks / 2 && error < options_.error * largest;
  }

  Exponents result(const Trajectory& run) {
    if (variation_.tangents().cols() > 0) orthonormalise(false);
    Exponents out{.end = run.end, .cost = run.cost, .messages = run.messages};
    for (const std::string& note : variation_.notes()) out.messages.push_back(note);
    out.time = started_ ? std::abs(now_ - begin_) : 0;
    std::vector<std::pair<double, double>> all;
    for (size_t k = 0; k < n_; ++k) {
      if (k < sums_.size() && out.time > 0) {
        all.emplace_back(sums_[k] / out.time, blocks_->error(k, out.time));
      } else {
        all.emplace_back(-HUGE_VAL, std::nan(""));
      }
    }
    std::vector<size_t> order(n_);
    for (size_t k = 0; k < n_; ++k) order[k] = k;
    std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return all[a].first > all[b].first; });
    for (const size_t k : order) {
      out.exponents.push_back(all[k].first);
      out.error.push_back(all[k].second);
      if (k < sums_.size()) out.running.push_back(std::move(running_[k]));
    }
    out.times = std::move(times_);
    for (std::vector<double>& r : out.running) r.resize(out.times.size(), std::nan(""));
    return out;
  }

 private:
  bool passes_transient() {
    if (options_.open && transient_ == HUGE_VAL && ++pieces_ == 200) {
      transient_ = now_;
      blocks_.emplace(n_, transient_, std::max(std::abs(now_ - options_.run.from) / 16, 1e-300));
    }
    return !started_ && transient_ != HUGE_VAL &&
           std::abs(now_ - options_.run.from) >= std::abs(transient_ - options_.run.from);
  }

  void orthonormalise(bool event) {
    Mat x = variation_.tangents();
    if (x.cols() == 0) return;
    since_ = 0;
    const Eigen::Index columns = x.cols();
    auto [Q, R] = qr(x);
    std::vector<double> logs;
    std::vector<Eigen::Index> kept;
    double largest = 0;
    for (Eigen::Index k = 0; k < columns; ++k) largest = std::max(largest, std::abs(R(k, k)));
    for (Eigen::Index k = 0; k < columns; ++k) {
      const double length = std::abs(R(k, k));
      if (length == 0 || (event && length < forgotten * std::max(largest, 1.0))) continue;
      kept.push_back(k);
      logs.push_back(std::log(length));
    }
    if (kept.size() < static_cast<size_t>(columns)) {
      // What is forgotten has been minus infinity all along; the sums of the others stay in their order.
      Mat fewer(x.rows(), static_cast<Eigen::Index>(kept.size()));
      std::vector<double> sums;
      for (size_t k = 0; k < kept.size(); ++k) {
        fewer.col(static_cast<Eigen::Index>(k)) = Q.col(kept[k]);
        sums.push_back(sums_[static_cast<size_t>(kept[k])]);
      }
      Q = std::move(fewer);
      sums_ = std::move(sums);
      running_.resize(sums_.size());
      blocks_->drop(sums_.size());
      variation_.shrink(Q.cols());
    }
    variation_.set_tangents(std::move(Q));
    if (started_) {
      for (size_t k = 0; k < logs.size(); ++k) sums_[k] += logs[k];
      blocks_->add(now_, logs);
      note();
    } else if (transient_ != HUGE_VAL &&
               std::abs(now_ - options_.run.from) >= std::abs(transient_ - options_.run.from)) {
      started_ = true;
      begin_ = now_;
      blocks_.emplace(sums_.size(), begin_, blocks_->length());
      std::fill(sums_.begin(), sums_.end(), 0.0);
    }
    ++taken_;
  }

  /// The running estimate, at most a few hundred points of it, ever farther apart.
  void note() {
    const double time = std::abs(now_ - begin_);
    if (!(time > 0) || time < next_note_) return;
    next_note_ = std::max(time * 1.01, time + 1e-300);
    times_.push_back(now_);
    for (size_t k = 0; k < sums_.size(); ++k) {
      running_[k].resize(times_.size() - 1, std::nan(""));
      running_[k].push_back(sums_[k] / time);
    }
  }

  const ExponentOptions& options_;
  Variation variation_;
  size_t n_;
  std::vector<double> sums_;
  std::optional<Blocks> blocks_;
  std::vector<std::vector<double>> running_;
  std::vector<double> times_;
  double now_ = 0, transient_ = 0, begin_ = 0, next_note_ = 0;
  long since_ = 0, taken_ = 0, pieces_ = 0;
  bool started_ = false;
};

}  // namespace

Exponents find_exponents(const Program& program, const ExponentOptions& options) {
  Spectrum spectrum(program, options);
  RunOptions run = options.run;
  run.keep_events = false;
  if (options.open) run.max_steps = options.most_steps;
  run.on_piece = [&](const Piece& piece, const Arc& arc) { spectrum.piece(piece, arc); };
  run.on_transition = [&](const Transition& e) { spectrum.transition(e); };
  bool enough = false;
  run.progress = [&](double t) {
    enough = spectrum.enough();
    return !enough && (!options.run.progress || options.run.progress(t));
  };
  const Trajectory trajectory = simulate(program, run);
  Exponents out = spectrum.result(trajectory);
  if (options.open && (enough || (out.end.why == Why::stalled && trajectory.cost.steps >= options.most_steps)))
    out.end = {Why::time, "", trajectory.end.t, trajectory.end.state, trajectory.end.mode};
  return out;
}

}  // namespace saltus
