#include "expr/interpolant.hpp"

#include <algorithm>
#include <bit>
#include <cassert>
#include <cmath>

namespace saltus {
namespace {

constexpr double nowhere = 1e150;     // a break that is never met; its square is still a number
constexpr double end_margin = 1e-10;  // of the length: a state or time that arrives at the last point is still inside

}  // namespace

Interpolant::Interpolant(std::vector<double> x, std::vector<double> y, Between between, Outside outside)
    : x_(std::move(x)), y_(std::move(y)), given_(x_.size()), between_(between), outside_(outside) {
  assert(x_.size() == y_.size() && x_.size() >= 2 && std::is_sorted(x_.begin(), x_.end()));
  for (size_t i = 0; i < given_; ++i) {
    for (const double v : {x_[i], y_[i]}) hash_ = (hash_ ^ std::bit_cast<std::uint64_t>(v)) * 0x100000001b3u;
  }
  hash_ = hash_ * 31 + static_cast<std::uint64_t>(between) * 4 + static_cast<std::uint64_t>(outside);
  if (outside_ == Outside::error) {
    margin_ = end_margin * period();
    if (between_ == Between::step) {  // the last point has a value of its own
      x_.push_back(x_.back() + margin_);
      y_.push_back(y_.back());
    }
  }
  if (between_ == Between::cubic) make_spline();
  look_over();
}

bool operator==(const Interpolant& a, const Interpolant& b) {
  return a.hash_ == b.hash_ && a.between_ == b.between_ && a.outside_ == b.outside_ && a.x_ == b.x_ && a.y_ == b.y_;
}

/// h[i-1] M[i-1] + 2 (h[i-1] + h[i]) M[i] + h[i] M[i+1] = 6 (s[i] - s[i-1]), with M = 0 at both ends.
void Interpolant::make_spline() {
  const size_t n = x_.size();
  bend_.assign(n, 0.0);
  std::vector<double> ratio(n, 0.0);
  for (size_t i = 1; i + 1 < n; ++i) {
    const double before = x_[i] - x_[i - 1], after = x_[i + 1] - x_[i];
    const double turn = (y_[i + 1] - y_[i]) / after - (y_[i] - y_[i - 1]) / before;
    const double pivot = 2 * (before + after) - before * ratio[i - 1];
    ratio[i] = after / pivot;
    bend_[i] = (6 * turn - before * bend_[i - 1]) / pivot;
  }
  for (size_t i = n - 1; i-- > 1;) bend_[i] -= ratio[i] * bend_[i + 1];
}

void Interpolant::look_over() {
  const auto look = [this](double number) {
    const Piece p = piece(number);
    jumps_ = jumps_ || p.below[0] != 0 || p.above[0] != 0;
    for (const Polynomial& polynomial : {p.value, p.below, p.above}) {
      for (const double c : polynomial) finite_ = finite_ && std::isfinite(c);
    }
  };
  for (size_t i = 0; i < x_.size(); ++i) look(static_cast<double>(i));
  look(-1);
}

bool Interpolant::inside(double number) const {
  return outside_ == Outside::repeat || (number >= 0 && number < static_cast<double>(x_.size() - 1));
}

bool Interpolant::given(double number) const { return outside_ != Outside::error || inside(number); }

/// The point at which a piece begins.
size_t Interpolant::place_of(double number) const {
  const double count = static_cast<double>(x_.size() - 1);
  if (outside_ == Outside::repeat) number -= count * std::floor(number / count);
  return static_cast<size_t>(std::clamp(number, 0.0, count));
}

double Interpolant::break_of(double number) const {
  const double last = static_cast<double>(x_.size() - 1);
  if (outside_ == Outside::repeat) return x_[place_of(number)] + period() * std::floor(number / last);
  if (number < 0) return -nowhere;
  if (number > last) return nowhere;
  return x_[place_of(number)] + (number == 0 ? -margin_ : number == last ? margin_ : 0.0);
}

/// The polynomial of a piece in powers of the distance from its break.
Interpolant::Polynomial Interpolant::start_of(double number) const {
  const size_t last = x_.size() - 1;
  if (!inside(number)) {
    if (outside_ == Outside::zero) return {};
    if (outside_ == Outside::error) return number < 0 ? start_of(0) : end_of(static_cast<double>(last) - 1);
    return {number < 0 ? y_.front() : y_.back()};
  }
  const size_t i = place_of(number);
  if (between_ == Between::step) return {y_[i]};
  const double length = x_[i + 1] - x_[i], slope = (y_[i + 1] - y_[i]) / length;
  if (between_ == Between::linear) return {y_[i], slope};
  return {y_[i], slope - length * (2 * bend_[i] + bend_[i + 1]) / 6, bend_[i] / 2,
          (bend_[i + 1] - bend_[i]) / (6 * length)};
}

/// The polynomial of a piece in powers of the distance from its end.
Interpolant::Polynomial Interpolant::end_of(double number) const {
  if (!inside(number)) return outside_ == Outside::error && number < 0 ? start_of(0) : start_of(number);
  const size_t i = place_of(number);
  if (between_ == Between::step) return {y_[i]};
  const double length = x_[i + 1] - x_[i], slope = (y_[i + 1] - y_[i]) / length;
  if (between_ == Between::linear) return {y_[i + 1], slope};
  return {y_[i + 1], slope + length * (bend_[i] + 2 * bend_[i + 1]) / 6, bend_[i + 1] / 2,
          (bend_[i + 1] - bend_[i]) / (6 * length)};
}

/// The piece before `number` minus that piece, around the break between them.
Interpolant::Polynomial Interpolant::difference(double number) const {
  const Polynomial before = end_of(number - 1), after = start_of(number);
  Polynomial out{};
  const bool joined = inside(number - 1) && inside(number) && (outside_ != Outside::repeat || place_of(number) > 0);
  const size_t smooth = joined && between_ == Between::cubic ? 3 : 0;  // derivatives that a spline shares
  for (size_t k = smooth; k < out.size(); ++k) out[k] = before[k] - after[k];
  return out;
}

Interpolant::Piece Interpolant::piece(double number) const {
  Piece p{.from = break_of(number), .to = break_of(number + 1), .origin = 0};
  const double last = static_cast<double>(x_.size() - 1);
  p.origin = outside_ == Outside::repeat ? p.from : x_[place_of(number)];
  if (outside_ == Outside::error && number < 0) p.origin = x_.front();
  p.value = start_of(number);
  if (outside_ == Outside::repeat || number > -1) p.below = difference(number);
  if (outside_ == Outside::repeat || number < last) {
    p.above = difference(number + 1);
    for (double& c : p.above) c = -c;
  }
  return p;
}

double Interpolant::number_at(double u) const {
  if (outside_ != Outside::repeat) {
    const double number = static_cast<double>(std::upper_bound(x_.begin(), x_.end(), u) - x_.begin()) - 1;
    const double last = static_cast<double>(x_.size() - 1);
    if (number < 0 && u >= break_of(0)) return 0;
    return number >= last && u < break_of(last) ? last - 1 : number;
  }
  const double turns = std::floor((u - x_[0]) / period());
  const double inside = std::clamp(u - turns * period(), x_[0], x_.back());
  const auto above = std::upper_bound(x_.begin() + 1, x_.end() - 1, inside);
  double number = turns * static_cast<double>(x_.size() - 1) + static_cast<double>(above - x_.begin()) - 1;
  if (u < break_of(number)) number -= 1;  // rounding, where many periods have passed
  if (u >= break_of(number + 1)) number += 1;
  return number;
}

double Interpolant::nearest_break(double u) const {
  const double number = number_at(u);
  return std::abs(break_of(number + 1) - u) < std::abs(u - break_of(number)) ? number + 1 : number;
}

double Interpolant::operator()(double u, int derivative) const {
  if (!std::isfinite(u)) return std::nan("");
  const double number = number_at(u);
  if (!given(number)) return std::nan("");
  const Piece p = piece(number);
  double sum = 0;
  for (int k = 3; k >= derivative; --k) {
    double factor = 1;
    for (int j = 0; j < derivative; ++j) factor *= k - j;
    sum = sum * (u - p.origin) + factor * p.value[static_cast<size_t>(k)];
  }
  return sum;
}

}  // namespace saltus
