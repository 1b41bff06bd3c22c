#include "code/native.hpp"

#include <algorithm>
#include <list>
#include <mutex>
#include <string>
#include <unordered_map>

#include <dlfcn.h>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/module.hpp"
#include "code/native_code.hpp"

namespace saltus {
namespace {

struct NativeModule {
  decltype(&saltus_compile) compile = nullptr;
  std::string trouble{};  ///< why it cannot be used although it is there
};

NativeModule load_module() {
  const auto path = find_module("libsaltus_native.so");
  if (path.empty()) return {};
  void* module = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (module == nullptr) return {.trouble = ::dlerror()};
  return {.compile = reinterpret_cast<decltype(&saltus_compile)>(::dlsym(module, "saltus_compile"))};
}

const NativeModule& loaded() {
  static const NativeModule module = load_module();
  return module;
}

/// Equal sources have equal keys, and only they.
std::string key_of(const NativeSource& source) {
  std::string key;
  const auto add = [&](auto value) { key.append(reinterpret_cast<const char*>(&value), sizeof(value)); };
  add(source.stride);
  add(source.order);
  for (const auto& list : source.operations) {
    add(list.size());
    for (const Operation& o : list) {
      add(o.instr);
      for (const int place : {o.out, o.a, o.b}) add(place);
    }
  }
  add(source.rates.size());
  for (const auto& [x, rate] : source.rates) {
    add(x);
    add(rate);
  }
  add(source.numbers.size());
  for (const auto& [place, value] : source.numbers) {
    add(place);
    add(value);
  }
  for (const int place : source.wanted) add(place);
  return key;
}

/// About how many instructions coefficient k takes.
double length(const NativeSource& source, int k) {
  double sum = 0;
  for (const Operation& o : source.operations[static_cast<size_t>(std::min(k, 2))]) {
    const bool simple = o.instr <= Instr::scale || o.instr == Instr::div_c || o.instr == Instr::sin_cos_t;
    sum += simple ? 2 : 2.0 * (k + 2) * std::min(slots_of(o.instr), 4);
  }
  return sum + static_cast<double>(source.rates.size());
}

/// Machine code compiled so far. Code is small; a program that asks for more than `most` of it goes on interpreted.
struct NativeCache {
  static constexpr size_t most = 1000;
  struct Entry {
    NativeSource source;
    NativeCode code;
  };
  std::mutex mutex;
  std::list<Entry> entries;
  std::unordered_map<std::string, const Entry*> by_key;
};

NativeCache& compiled() {
  static NativeCache all;
  return all;
}

}  // namespace

bool native_available() { return loaded().compile != nullptr; }

void check_native(Native native) {
  if (native != Native::on || native_available()) return;
  if (!loaded().trouble.empty())
    throw Error(ErrorKind::usage, fmt::format("cannot load the compiler of machine code: {}", loaded().trouble), {},
                "install LLVM 19 (Debian: libllvm19), or leave `native` at auto");
  throw Error(ErrorKind::usage, "this saltus has no compiler for machine code (libsaltus_native.so)", {},
              "build it with 'make native', or leave `native` at auto");
}

NativeCode native_code(NativeSource source, bool known) {
  // Instructions: compiling takes about 2 us for each, and long code pushes the engine's out of the cache.
  constexpr double longest = 20'000, short_enough = 1000, short_below_loop = 1200;
  constexpr int fewest_terms = 6, most_terms = 10;
  double below_loop = 0, all = 0;
  int few_terms = 0;  // orders that are written out
  for (int k = 0; k <= source.order; ++k) {
    const double more = length(source, k);
    all += more;
    if (few_terms != k || k >= most_terms || (k >= fewest_terms && below_loop + more > short_below_loop)) continue;
    below_loop += more;
    few_terms = k + 1;
  }
  if (below_loop > longest) return {};
  source.looped_from = all <= short_enough ? source.order + 1 : few_terms;
  NativeCache& cache = compiled();
  const std::lock_guard lock(cache.mutex);
  if ((known && cache.entries.empty()) || !native_available()) return {};
  std::string key = key_of(source);
  if (const auto found = cache.by_key.find(key); found != cache.by_key.end()) return found->second->code;
  if (known || cache.entries.size() >= NativeCache::most) return {};
  NativeCache::Entry& entry = cache.entries.emplace_back(NativeCache::Entry{.source = std::move(source), .code = {}});
  entry.code = loaded().compile(entry.source, native_functions());
  cache.by_key.emplace(std::move(key), &entry);
  return entry.code;
}

}  // namespace saltus
