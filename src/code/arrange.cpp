#include "code/arrange.hpp"

#include <algorithm>
#include <utility>

#include "base/index.hpp"

namespace saltus {
namespace {

using Operations = std::vector<Operation>;

bool adds(Instr instr) { return instr == Instr::add || instr == Instr::sub; }

/// Facts about the series (zero, constant, linear) while the operations of an order above 0 are simplified one by one.
class Known {
 public:
  explicit Known(KnownSeries start)
      : varies_(std::move(start.varies)),
        null_(std::move(start.null)),
        writes_(null_.size(), 0),
        copies_(null_.size()) {
    const auto first = std::find(null_.begin(), null_.end(), 1);
    if (first != null_.end()) nothing_ = static_cast<int>(first - null_.begin());
  }

  /// Zero at all orders; zero above 0.
  bool null(int slot) const { return null_[at(slot)]; }
  bool ends(int slot) const { return !varies_[at(slot)]; }
  /// A slot that is null, or -1.
  int nothing() const { return nothing_; }
  int original(int slot) const {
    const Copy& copy = copies_[at(slot)];
    return copy.of >= 0 && writes_[at(copy.of)] == copy.writes ? copy.of : slot;
  }
  void set(int slot, bool varies, bool null) {
    ++writes_[at(slot)];
    varies_[at(slot)] = varies;
    null_[at(slot)] = null;
    copies_[at(slot)] = {};
  }
  void note(const Operation& o) {
    const bool sum = keeps_linear(o.instr);
    const bool vanishes = sum && ends(o.a) && (!adds(o.instr) || ends(o.b));
    const bool zero = o.instr == Instr::scale && (null(o.a) || null(o.b));
    for (int slot = o.out; slot < o.out + slots_of(o.instr); ++slot) set(slot, !vanishes && !zero, zero);
    if (o.instr == Instr::add_c && o.a != o.out) copies_[at(o.out)] = {o.a, writes_[at(o.a)]};
  }

 private:
  struct Copy {
    int of = -1, writes = 0;
  };
  std::vector<char> varies_, null_;
  std::vector<int> writes_;
  std::vector<Copy> copies_;
  int nothing_ = -1;
};

/// An operation that does less for the same coefficient above order 0.
Operation shorter(Operation o, const Known& known) {
  if (keeps_linear(o.instr)) {
    o.a = known.original(o.a);
    if (adds(o.instr)) o.b = known.original(o.b);
  }
  const bool a = !known.ends(o.a), b = !known.ends(o.b);
  switch (o.instr) {
    case Instr::add:
      if (!a && b) std::swap(o.a, o.b);
      if (a != b) o.instr = Instr::add_c;
      break;
    case Instr::sub:
      if (a && !b) o.instr = Instr::add_c;
      if (!a && b) o = {Instr::neg, o.out, o.b, o.b};
      break;
    case Instr::mul:
      if (!a && b) std::swap(o.a, o.b);
      if (a != b) o.instr = Instr::scale;
      break;
    case Instr::div:
      if (a && !b) o.instr = Instr::div_c;
      break;
    default: break;
  }
  return o;
}

/// All operations with what is known; states whose rates turn out to be zero are known from then on.
Operations shortened(std::span<const Operation> operations, std::span<const std::pair<int, int>> rates,
                     KnownSeries& start) {
  Operations all;
  for (bool more = true; more;) {
    all.clear();
    Known known(start);
    for (const Operation& o : operations) {
      const Operation next = shorter(o, known);
      const bool ends = known.ends(next.a) && known.ends(next.b);
      if (ends && !keeps_linear(next.instr) && known.nothing() >= 0) {
        for (int slot = next.out; slot < next.out + slots_of(next.instr); ++slot) {
          all.push_back({Instr::scale, slot, known.nothing(), known.nothing()});  // at order 0 it is not zero
          known.set(slot, false, false);
        }
        continue;
      }
      all.push_back(next);
      known.note(next);
    }
    more = false;
    for (const auto& [x, rate] : rates) {
      if (!start.varies[at(x)] || !known.null(rate)) continue;
      start.varies[at(x)] = 0;
      more = true;
    }
  }
  return all;
}

}  // namespace

std::vector<Operation> simplified(std::span<const Operation> operations, std::span<const std::pair<int, int>> rates,
                                  std::span<const int> wanted, KnownSeries known) {
  const Operations all = shortened(operations, rates, known);
  // Slots read when the order is done: a product reads its factors at lower orders too.
  std::vector<char> read(known.varies.size(), 0);
  for (const int slot : wanted) read[at(slot)] = 1;
  for (const auto& [x, rate] : rates) read[at(rate)] = 1;
  for (const Operation& o : all) {
    if (!keeps_linear(o.instr)) read[at(o.a)] = read[at(o.b)] = 1;
  }
  Operations kept;
  for (size_t k = all.size(); k-- > 0;) {
    const Operation& o = all[k];
    const auto* own = &read[at(o.out)];
    if (std::none_of(own, own + slots_of(o.instr), [](char r) { return r; })) continue;
    if (keeps_linear(o.instr)) read[at(o.out)] = 0;  // what it was before is not seen from here on
    read[at(o.a)] = 1;
    if (adds(o.instr) || !keeps_linear(o.instr)) read[at(o.b)] = 1;
    kept.push_back(o);
  }
  std::reverse(kept.begin(), kept.end());
  return kept;
}

namespace {

using Lists = std::vector<std::vector<int>>;

/// Which operation makes each slot, -1: none; nothing if two make one.
std::vector<int> makers(const Operations& nodes, size_t slots) {
  std::vector<int> maker(slots, -1);
  for (size_t i = 0; i < nodes.size(); ++i) {
    for (int slot = nodes[i].out; slot < nodes[i].out + slots_of(nodes[i].instr); ++slot) {
      if (maker[at(slot)] >= 0) return {};
      maker[at(slot)] = static_cast<int>(i);
    }
  }
  return maker;
}

/// Takes what waits for nothing that is not done, one after the other; `frees` says who waits for whom.
std::vector<int> peel(const Lists& waits_for, const Lists& frees, std::vector<char>& done) {
  std::vector<size_t> open(done.size(), 0);
  std::vector<int> list;
  const auto take = [&](size_t i) {
    done[i] = 1;
    list.push_back(static_cast<int>(i));
  };
  for (size_t i = 0; i < done.size(); ++i) {
    for (const int m : waits_for[i]) open[i] += !done[at(m)];
  }
  for (size_t i = 0; i < done.size(); ++i) {
    if (!done[i] && open[i] == 0) take(i);
  }
  for (size_t next = 0; next < list.size(); ++next) {
    for (const int i : frees[at(list[next])]) {
      if (!done[at(i)] && --open[at(i)] == 0) take(at(i));
    }
  }
  return list;
}

}  // namespace

Arrangement arrange(std::span<const Operation> operations, std::span<const std::pair<int, int>> rates, size_t slots) {
  Operations nodes;
  for (const auto& [x, rate] : rates) nodes.push_back({Instr::integral, x, rate, rate});
  nodes.insert(nodes.end(), operations.begin(), operations.end());
  const std::vector<int> maker = makers(nodes, slots);
  if (maker.empty()) return {};
  Lists needs(nodes.size()), needed_by(nodes.size());
  for (size_t i = 0; i < nodes.size(); ++i) {
    for (const int slot : {nodes[i].a, nodes[i].b}) {
      const int m = maker[at(slot)];
      if (m < 0 || std::find(needs[i].begin(), needs[i].end(), m) != needs[i].end()) continue;
      needs[i].push_back(m);
      needed_by[at(m)].push_back(static_cast<int>(i));
    }
  }
  // From both ends: what needs nothing that is left, and what nothing that is left needs.
  std::vector<char> done(nodes.size(), 0);
  const std::vector<int> first = peel(needs, needed_by, done), last = peel(needed_by, needs, done);
  Arrangement out;
  for (const int i : first) out.before.push_back(nodes[at(i)]);
  for (size_t i = 0; i < nodes.size(); ++i) {
    if (done[i]) continue;
    if (i < rates.size()) {
      out.rates.push_back(rates[i]);
    } else {
      out.together.push_back(nodes[i]);
    }
  }
  for (size_t k = last.size(); k-- > 0;) out.after.push_back(nodes[at(last[k])]);
  return out;
}

}  // namespace saltus
