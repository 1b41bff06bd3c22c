// Machine code for the operations of a tape, made while the program runs: docs/method/native.md.
//
// It does what code/jet_rules.hpp does, operation by operation and with the same functions, so that its results have
// the same bits: whether and when it is used changes the time a run takes and nothing else. The compiler (LLVM) lives
// in a module of its own (libsaltus_native.so, native_llvm.cpp), loaded when the first code is wanted.
#pragma once

#include <array>
#include <cstddef>
#include <utility>
#include <vector>

#include "code/tape.hpp"

namespace saltus {

/// Machine code for coefficients 0..order of some series; without `run` there is none.
struct NativeCode {
  void (*run)(double* series, int first, int last) = nullptr;  ///< coefficients first..last, last <= order
  int order = -1;
};

/// The work of the code: for each order k, x[k] = rate[k-1]/k, then the operations of list min(k, 2).
struct NativeSource {
  std::array<std::vector<Operation>, 3> operations{};  ///< with places in the series instead of slots
  std::vector<std::pair<int, int>> rates{};            ///< (x, rate), places
  std::vector<std::pair<int, double>> numbers{};       ///< places that hold a literal number
  std::vector<int> wanted{};                           ///< places of the series wanted in memory; all if empty
  int stride = 0;                                      ///< between the series of one operation
  int order = 0;                                       ///< the highest
  /// From here on one piece of code serves all orders, with calls for its sums of products; below it each order has its
  /// own, with its terms written out. Set by `native_code`.
  int looped_from = 0;
};

/// The functions that the interpreter calls: the same ones give the same bits.
struct NativeFunctions {
  double (*sqrt)(double), (*cbrt)(double), (*exp)(double), (*log)(double), (*expm1)(double), (*log1p)(double);
  double (*tan)(double), (*sinh)(double), (*cosh)(double), (*tanh)(double), (*atan)(double), (*asin)(double);
  double (*acos)(double), (*atan2)(double, double), (*pow)(double, double);
  void (*sin_cos)(double a, double& sine, double& cosine);
  /// Sum of a[j] b[k-j], j = 1..k-1, and the same of a with itself.
  double (*convolve)(const double* a, const double* b, int k), (*convolve_itself)(const double* a, int k);
  /// Two such sums side by side: of a and b, and of c and d; of a and of b with themselves.
  void (*convolve_two)(const double* a, const double* b, const double* c, const double* d, int k, double* sums);
  void (*convolve_two_itself)(const double* a, const double* b, int k, double* sums);
  /// Coefficient k of one operation, interpreted: for the few whose work depends on values.
  void (*extend)(const Operation& operation, double* series, size_t stride, int k);
};
const NativeFunctions& native_functions();

/// Code for the source, from the module or, if it was asked for before, from memory; none if the module is missing
/// or the source is too long. `known`: from memory only. Any thread may call it.
NativeCode native_code(NativeSource source, bool known = false);

/// The one symbol of the module. The source must stay where it is as long as the code is used.
extern "C" NativeCode saltus_compile(const NativeSource& source, const NativeFunctions& functions);

}  // namespace saltus
