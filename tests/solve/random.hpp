// Random vectors and matrices, the same in every run.
#pragma once

#include <random>

#include "../matrices.hpp"

namespace saltus {

struct Random {
  std::mt19937 engine;

  explicit Random(unsigned seed) : engine(seed) {}
  double normal() { return std::normal_distribution<double>()(engine); }
  double uniform(double a, double b) { return std::uniform_real_distribution<double>(a, b)(engine); }
  Mat normals(int n, int m) {
    return made(n, m, [&] { return normal(); });
  }
  Vec normals(int n) {
    return made(n, [&] { return normal(); });
  }
};

}  // namespace saltus
