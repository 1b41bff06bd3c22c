#include "analysis/branch_book.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

namespace saltus {
namespace {

void pack(Packer& out, const std::vector<std::string>& texts) {
  out.integer(static_cast<std::int64_t>(texts.size()));
  for (const std::string& text : texts) out.text(text);
}

std::vector<std::string> unpack_texts(Unpacker& in) {
  std::vector<std::string> out(static_cast<size_t>(in.integer()));
  for (std::string& text : out) text = in.text();
  return out;
}

void pack(Packer& out, const Spectrum& spectrum) {
  out.integer(static_cast<std::int64_t>(spectrum.size()));
  for (const std::complex<double>& z : spectrum) out.number(z.real()).number(z.imag());
}

Spectrum unpack_spectrum(Unpacker& in) {
  Spectrum out(static_cast<size_t>(in.integer()));
  for (std::complex<double>& z : out) {
    const double re = in.number();
    z = {re, in.number()};
  }
  return out;
}

void pack(Packer& out, const BranchPoint& p) {
  out.numbers(p.values).numbers(p.state).number(p.t).number(p.period).integer(p.stable);
  pack(out, p.spectrum);
  pack(out, p.signature);
  out.text(p.label).numbers(p.lowest).numbers(p.highest);
}

BranchPoint unpack_point(Unpacker& in) {
  BranchPoint p{.values = in.numbers(), .state = in.numbers(), .t = in.number(), .period = in.number()};
  p.stable = in.integer() != 0;
  p.spectrum = unpack_spectrum(in);
  p.signature = unpack_texts(in);
  p.label = in.text();
  p.lowest = in.numbers();
  p.highest = in.numbers();
  return p;
}

void pack(Packer& out, const SpecialPoint& s) {
  out.text(s.label).text(s.type).text(s.detail).numbers(s.values).numbers(s.state).number(s.t).number(s.period);
  pack(out, s.spectrum);
  out.integer(s.after.has_value());
  if (s.after) pack(out, *s.after);
  out.integer(s.crosses.has_value());
  if (s.crosses) pack(out, *s.crosses);
  out.numbers(s.crosses_at);
  out.integer(s.persists ? 1 + *s.persists : 0).integer(s.counted_twice);
  pack(out, s.signature);
  out.numbers(s.near_values).numbers(s.near_state).number(s.near_t).number(s.near_period);
}

SpecialPoint unpack_special(Unpacker& in) {
  SpecialPoint s{.label = in.text(),
                 .type = in.text(),
                 .detail = in.text(),
                 .values = in.numbers(),
                 .state = in.numbers(),
                 .t = in.number(),
                 .period = in.number(),
                 .spectrum = unpack_spectrum(in)};
  if (in.integer() != 0) s.after = unpack_spectrum(in);
  if (in.integer() != 0) s.crosses = unpack_texts(in);
  s.crosses_at = in.numbers();
  if (const std::int64_t persists = in.integer(); persists != 0) s.persists = persists == 2;
  s.counted_twice = in.integer() != 0;
  s.signature = unpack_texts(in);
  s.near_values = in.numbers();
  s.near_state = in.numbers();
  s.near_t = in.number();
  s.near_period = in.number();
  return s;
}

Bytes pack(const Walk& walk) {
  Packer out;
  out.integer(static_cast<std::int64_t>(walk.points.size()));
  for (const BranchPoint& p : walk.points) pack(out, p);
  out.integer(static_cast<std::int64_t>(walk.special.size()));
  for (const SpecialPoint& s : walk.special) pack(out, s);
  out.integer(walk.end.direction).text(walk.end.why).text(walk.end.detail).number(walk.end.value);
  return out.take();
}

Walk unpack_walk(const Bytes& bytes) {
  Unpacker in(bytes);
  Walk walk;
  walk.points.resize(static_cast<size_t>(in.integer()));
  for (BranchPoint& p : walk.points) p = unpack_point(in);
  walk.special.resize(static_cast<size_t>(in.integer()));
  for (SpecialPoint& s : walk.special) s = unpack_special(in);
  walk.end.direction = static_cast<int>(in.integer());
  walk.end.why = in.text();
  walk.end.detail = in.text();
  walk.end.value = in.number();
  return walk;
}

}  // namespace

// ---- the walks of the past -----------------------------------------------------------------------------------------

WalkLog::WalkLog(const std::filesystem::path& path, const std::string& identity)
    : checkpoint_(path, identity, [this](std::size_t item, Bytes bytes) {
        if (item == known_.size()) known_.push_back(std::move(bytes));
      }) {}

std::optional<Walk> WalkLog::next() {
  if (made_ >= known_.size()) return std::nullopt;
  return unpack_walk(known_[made_++]);
}

void WalkLog::add(const Walk& walk) {
  if (!open_) return;
  checkpoint_.append(made_++, pack(walk));
  checkpoint_.flush(true);
}

// ---- the book ------------------------------------------------------------------------------------------------------

bool BranchBook::point(BranchPoint p) {
  tell();
  branch.points.push_back(std::move(p));
  return !options_.on_point || options_.on_point(branch.points.back());
}

void BranchBook::special(SpecialPoint s, BranchPoint p) {
  tell();
  const std::string letters = label_letters(s.type);
  const auto known = options_.labels.find(letters);
  int number = known == options_.labels.end() ? 1 : 1 + known->second;
  for (const SpecialPoint& other : branch.special) number += label_letters(other.type) == letters;
  p.label = s.label = fmt::format("{}{}", letters, number);
  branch.points.push_back(std::move(p));
  branch.special.push_back(std::move(s));
  untold_ = true;
}

void BranchBook::take_back() {
  branch.points.pop_back();
  branch.special.pop_back();
  untold_ = false;
}

void BranchBook::clear() {
  branch.points.clear();
  branch.special.clear();
  untold_ = false;
}

void BranchBook::not_found(std::string why, std::string message) {
  branch.found = false;
  branch.why = std::move(why);
  branch.message = std::move(message);
}

void BranchBook::tell() {
  if (std::exchange(untold_, false) && options_.on_special) options_.on_special(branch.special.back());
}

void BranchBook::turn_round() {
  std::reverse(branch.points.begin(), branch.points.end());
  std::reverse(branch.special.begin(), branch.special.end());
}

void BranchBook::begin_at(const BranchPoint& start) {
  if (options_.on_start) options_.on_start(start);
}

BranchEnd BranchBook::walked(const Walker& walker) {
  const auto first_point = static_cast<long>(branch.points.size()),
             first_special = static_cast<long>(branch.special.size());
  if (std::optional<Walk> past = options_.log ? options_.log->next() : std::nullopt) {
    for (BranchPoint& p : past->points) branch.points.push_back(std::move(p));
    for (SpecialPoint& s : past->special) {
      branch.special.push_back(std::move(s));
      if (options_.on_special) options_.on_special(branch.special.back());
    }
    if (options_.on_end) options_.on_end(past->end);
    return past->end;
  }
  const BranchEnd end = walker();
  tell();
  const bool finished = end.why != "stopped";
  if (options_.log && finished)
    options_.log->add({{branch.points.begin() + first_point, branch.points.end()},
                       {branch.special.begin() + first_special, branch.special.end()},
                       end});
  else if (options_.log)
    options_.log->close();
  if (finished && options_.on_end) options_.on_end(end);
  return end;
}

void BranchBook::both_ways(const BranchPoint& start, const Walker& down, const Walker& up) {
  begin_at(start);
  const BranchEnd low = walked(down);
  turn_round();
  if (low.why == "closed" && low.detail.empty()) {  // the other way lie the same points
    branch.ends = {low, {1, low.why, {}, low.value}};
    return;
  }
  point(start);
  const BranchEnd high = walked(up);
  branch.ends = {low, high};
}

void BranchBook::one_way(const BranchPoint& start, const Walker& up) {
  begin_at(start);
  point(start);
  const BranchEnd end = walked(up);
  branch.ends = {{-1, "start", "the special point at which it begins", start.values[0]}, end};
}

}  // namespace saltus
