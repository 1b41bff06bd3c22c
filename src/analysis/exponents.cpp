#include "analysis/exponents.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>
#include <utility>

#include "analysis/stretching.hpp"

namespace saltus {
namespace {

constexpr size_t most_blocks = 64;
/// Pieces that are the transient of a run without an end.
constexpr long open_transient = 200;
/// The shortest interval over which a run is examined in its transient.
constexpr double first_block = 1e-9;

/// Sums of logarithms over blocks of equal time; when there are too many, two become one.
class Blocks {
 public:
  Blocks(size_t exponents, double from, double length) : begin_(from), from_(from), length_(length), sums_(exponents) {}

  void add(double t, const std::vector<double>& logs) {
    const double elapsed = std::abs(t - from_);
    while (elapsed >= length_ * static_cast<double>(most_blocks)) merge();
    const size_t block = static_cast<size_t>(elapsed / length_);
    if (until_.size() <= block) until_.resize(block + 1, until_.empty() ? begin_ : until_.back());
    until_[block] = t;
    for (size_t k = 0; k < logs.size(); ++k) {
      if (sums_[k].size() <= block) sums_[k].resize(block + 1, 0.0);
      sums_[k][block] += logs[k];
    }
  }
  const std::vector<double>& sums(size_t k) const { return sums_[k]; }
  /// When that begins which is in the blocks: a piece is in the one in which it ends.
  double begin() const { return begin_; }
  /// When that ends which is in a block.
  double until(size_t block) const { return until_[block]; }
  double length() const { return length_; }
  /// Leaves out the first ones.
  void drop(size_t blocks) {
    from_ += static_cast<double>(blocks) * length_;
    blocks = std::min(blocks, until_.size());
    if (blocks > 0) begin_ = until_[blocks - 1];
    until_.erase(until_.begin(), until_.begin() + static_cast<std::ptrdiff_t>(blocks));
    for (std::vector<double>& s : sums_)
      s.erase(s.begin(), s.begin() + static_cast<std::ptrdiff_t>(std::min(blocks, s.size())));
  }

  /// Standard error of the mean rate: blocks are joined until neighbours no longer know each other. On a cycle they may
  /// all be alike: then what is left over at the end, which they do not contain, makes the error.
  double error(size_t k, double time, double rate) const {
    std::vector<double> rates;
    const size_t whole = static_cast<size_t>(time / length_ + 1e-9);
    for (size_t b = 0; b < std::min(whole, sums_[k].size()); ++b) rates.push_back(sums_[k][b] / length_);
    if (rates.size() < 2) return std::nan("");
    const double whole_blocks = std::accumulate(rates.begin(), rates.end(), 0.0) / static_cast<double>(rates.size());
    double largest = std::abs(rate - whole_blocks);
    do {
      const double n = static_cast<double>(rates.size());
      double mean = 0, square = 0;
      for (const double r : rates) mean += r / n;
      for (const double r : rates) square += (r - mean) * (r - mean);
      largest = std::max(largest, std::sqrt(square / (n - 1) / n));
      std::vector<double> joined;
      for (size_t b = 0; b + 1 < rates.size(); b += 2) joined.push_back(0.5 * (rates[b] + rates[b + 1]));
      rates = std::move(joined);
    } while (rates.size() >= 8);
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
    std::vector<double> until;
    for (size_t b = 0; b < until_.size(); b += 2) until.push_back(until_[std::min(b + 1, until_.size() - 1)]);
    until_ = std::move(until);
  }

  double begin_, from_, length_;
  std::vector<double> until_ = {};
  std::vector<std::vector<double>> sums_;
};

class RunningSpectrum {
 public:
  RunningSpectrum(const Program& program, const ExponentOptions& options)
      : options_(options),
        stretching_(program, options.run, program.states()),
        sums_(stretching_.logs()),
        counted_(sums_.size(), 0.0),
        running_(sums_.size()) {
    if (!options.open) {
      const double length = options.run.until - options.run.from;
      transient_ = 0.1 * std::abs(length);
      block_ = 0.9 * std::abs(length) / static_cast<double>(most_blocks);
      early_.emplace(sums_.size(), options.run.from, std::max(first_block * std::abs(length), 1e-300));
    }
  }

  void piece(const Piece& piece, const Arc& arc) {
    now_ = piece.start;
    // A piece much longer than the transient is not left out for it.
    if (!blocks_ && (over_ || elapsed() + std::abs(piece.length) > 2 * transient_)) begin();
    now_ += piece.length;
    if (++pieces_ == open_transient && options_.open) {
      transient_ = elapsed();
      block_ = transient_ / 16;
    }
    stretching_.along(piece, arc);
    if (blocks_) {
      count();
    } else {
      count_early();
      over_ = elapsed() >= transient_;  // what happens at its end belongs to it
    }
  }

  void transition(const Transition& e) {
    stretching_.through(e);
    blocks_ ? count() : count_early();
  }

  /// True if an open run is long enough: judged by the largest exponent where that is clearly above zero, as in chaos,
  /// else by the largest modulus.
  bool enough() const {
    if (!options_.open || !blocks_) return false;
    const double time = std::abs(now_ - begin_);
    constexpr double clearly = 3;  // errors above zero
    double modulus = 0, positive = 0, error = 0;
    for (size_t k = 0; k < counted_.size(); ++k) {
      if (!std::isfinite(counted_[k])) continue;
      const double value = counted_[k] / time, own = blocks_->error(k, time, value);
      modulus = std::max(modulus, std::abs(value));
      if (value > clearly * own) positive = std::max(positive, value);
      error = std::max(error, own);
    }
    return blocks_->sums(0).size() >= most_blocks / 2 && error <= options_.error * (positive > 0 ? positive : modulus);
  }

  Exponents result(const Trajectory& run) {
    Exponents out{.end = run.end, .cost = run.cost, .messages = run.messages};
    for (const std::string& note : stretching_.notes()) out.messages.push_back(note);
    if (!blocks_) end_early();
    if (blocks_) out.time = std::abs(now_ - begin_);
    const std::vector<double>& logs = stretching_.logs();
    std::vector<double> value(logs.size());
    for (size_t k = 0; k < logs.size(); ++k)
      value[k] = !std::isfinite(logs[k]) ? -HUGE_VAL : out.time > 0 ? counted_[k] / out.time : std::nan("");
    std::vector<size_t> order(logs.size());
    std::iota(order.begin(), order.end(), size_t{0});
    std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return value[a] > value[b]; });
    for (const size_t k : order) {
      out.exponents.push_back(value[k]);
      out.error.push_back(blocks_ && std::isfinite(value[k]) ? blocks_->error(k, out.time, value[k]) : std::nan(""));
      if (!std::isinf(value[k])) out.running.push_back(std::move(running_[k]));
    }
    out.times = std::move(times_);
    return out;
  }

 private:
  double elapsed() const { return std::abs(now_ - options_.run.from); }

  /// The growth of the logarithms since they were last counted.
  std::vector<double> take_grown() {
    std::vector<double> grown = stretching_.logs();
    for (size_t k = 0; k < grown.size(); ++k) {
      const double before = std::exchange(sums_[k], grown[k]);
      grown[k] = std::isfinite(before) ? grown[k] - before : grown[k];
    }
    return grown;
  }

  /// In the transient, for the case that the run ends there.
  void count_early() {
    if (early_) early_->add(now_, take_grown());
  }

  /// The first tenth is left out of a run that has ended in its transient.
  void end_early() {
    if (!early_ || !(elapsed() > 0)) return;
    const double length = early_->length();
    const size_t tenth = static_cast<size_t>(std::ceil(0.1 * elapsed() / length));
    if (!(static_cast<double>(tenth) * length < elapsed())) return;
    early_->drop(tenth);
    begin_ = early_->begin();
    const size_t count = early_->sums(0).size();
    for (size_t b = 0; b < count; ++b) {
      const double time = std::abs(early_->until(b) - begin_);
      if (!(time > 0)) continue;  // nothing has ended in it
      times_.push_back(early_->until(b));
      for (size_t k = 0; k < counted_.size(); ++k) {
        counted_[k] += b < early_->sums(k).size() ? early_->sums(k)[b] : 0;
        running_[k].push_back(counted_[k] / time);
      }
    }
    blocks_ = std::move(early_);
  }

  /// The growth until now is left out.
  void begin() {
    sums_ = stretching_.logs();
    begin_ = now_;
    blocks_.emplace(sums_.size(), begin_, std::max(block_, 1e-300));
  }

  /// Adds what the logarithms have grown by.
  void count() {
    const std::vector<double> grown = take_grown();
    for (size_t k = 0; k < grown.size(); ++k) counted_[k] += grown[k];
    blocks_->add(now_, grown);
    note();
  }

  /// The running estimate, at most some hundreds of points of it, ever farther apart.
  void note() {
    const double time = std::abs(now_ - begin_);
    if (!(time > 0) || time < next_note_) return;
    next_note_ = time * 1.01;
    times_.push_back(now_);
    for (size_t k = 0; k < counted_.size(); ++k) running_[k].push_back(counted_[k] / time);
  }

  const ExponentOptions& options_;
  Stretching stretching_;
  std::vector<double> sums_;           // the logarithms as they were last counted
  std::vector<double> counted_;        // of them, what has grown since the transient
  std::optional<Blocks> blocks_ = {};  // once the transient is over
  std::optional<Blocks> early_ = {};   // in the transient
  std::vector<std::vector<double>> running_;
  std::vector<double> times_ = {};
  double now_ = 0, begin_ = 0, next_note_ = 0;
  double transient_ = HUGE_VAL, block_ = 0;  // lengths of time
  long pieces_ = 0;
  bool over_ = false;  // the transient
};

}  // namespace

Exponents find_exponents(const Program& program, const ExponentOptions& options) {
  RunningSpectrum spectrum(program, options);
  RunOptions run = options.run;
  run.keep_events = false;
  if (options.open) {
    run.max_steps = options.most_steps;
    run.to_the_end = false;
  }
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
