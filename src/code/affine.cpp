#include "code/affine.hpp"

#include <algorithm>

#include "base/index.hpp"

namespace saltus {
namespace {

constexpr size_t longest = 64;  // terms: rows of dense models are no shorter than their formulas

/// The weights of a and b, and what is added, in the result of an operation; false where it is no sum.
bool weights(const Operation& o, std::span<const double> values, double& a, double& b, double& added) {
  a = 1;
  b = added = 0;
  switch (o.instr) {
    case Instr::add: b = 1; return true;
    case Instr::sub: b = -1; return true;
    case Instr::neg: a = -1; return true;
    case Instr::add_c: added = values[at(o.b)]; return true;
    case Instr::rsub_c:
      a = -1;
      added = values[at(o.b)];
      return true;
    case Instr::scale: a = values[at(o.b)]; return true;
    case Instr::div_c: a = 1.0 / values[at(o.b)]; return true;
    default: return false;
  }
}

}  // namespace

AffineRows::AffineRows(const Tape& tape, std::span<const double> values, std::span<const size_t> outputs) {
  std::vector<Sum> sums(at(tape.slots));
  std::vector<Term> terms;
  const auto end = [&] { return static_cast<uint32_t>(terms.size()); };
  for (size_t slot = 0; slot < sums.size(); ++slot) sums[slot] = {.constant = values[slot], .affine = true};
  int number = 0;
  for (const std::vector<int>* inputs : {&tape.states, &tape.sigmas, &tape.lambdas}) {
    for (const int slot : *inputs) {
      if (slot >= 0) {
        sums[at(slot)] = {.first = end(), .count = 1, .affine = true};
        terms.push_back({number, 1.0});
      }
      ++number;
    }
  }
  if (tape.time >= 0) sums[at(tape.time)] = {.time = 1, .affine = true};
  const auto add = [&](Sum& to, const Sum& from, double weight) {
    to.constant += weight * from.constant;
    to.time += weight * from.time;
    for (size_t k = from.first; k < from.first + from.count; ++k) {
      const Term term = terms[k];
      const auto first = terms.begin() + ix(to.first);
      const auto same = std::find_if(first, terms.end(), [&](const Term& t) { return t.from == term.from; });
      if (same == terms.end()) {
        terms.push_back({term.from, weight * term.weight});
      } else {
        same->weight += weight * term.weight;
      }
    }
  };
  for (const std::vector<Operation>* stage : {&tape.linear, &tape.timed, &tape.free, &tape.bound}) {
    for (const Operation& o : *stage) {
      double a = 0, b = 0, added = 0;
      Sum sum{.first = end()};
      sum.affine = weights(o, values, a, b, added) && sums[at(o.a)].affine && (b == 0 || sums[at(o.b)].affine);
      if (sum.affine) {
        sum.constant = added;
        add(sum, sums[at(o.a)], a);
        if (b != 0) add(sum, sums[at(o.b)], b);
        const auto left =
            std::remove_if(terms.begin() + ix(sum.first), terms.end(), [](const Term& t) { return t.weight == 0; });
        terms.erase(left, terms.end());
        sum.affine = terms.size() - sum.first <= longest;
        sum.count = static_cast<uint16_t>(terms.size() - sum.first);
      }
      if (!sum.affine) {
        terms.resize(sum.first);
        sum.count = 0;
      }
      for (int i = 0; i < slots_of(o.instr); ++i) sums[at(o.out + i)] = sum;
    }
  }
  for (const size_t output : outputs) {
    Sum sum = sums[at(tape.outputs[output])];
    const auto from = terms.begin() + ix(sum.first);
    sum.first = static_cast<uint32_t>(terms_.size());
    terms_.insert(terms_.end(), from, from + ix(sum.count));
    rows_.push_back(sum);
  }
  terms_.shrink_to_fit();
}

}  // namespace saltus
