// Random numbers for models made of text.
#pragma once

#include <random>
#include <string>
#include <vector>

#include <fmt/format.h>

namespace saltus {

class Draw {
 public:
  explicit Draw(unsigned seed) : engine_(seed) {}
  double between(double a, double b) { return std::uniform_real_distribution<double>(a, b)(engine_); }
  int whole(int a, int b) { return std::uniform_int_distribution<int>(a, b)(engine_); }
  std::string number(double a, double b, int digits = 4) { return fmt::format("{:.{}f}", between(a, b), digits); }
  template <class T>
  const T& of(const std::vector<T>& list) {
    return list[static_cast<size_t>(whole(0, static_cast<int>(list.size()) - 1))];
  }

 private:
  std::mt19937 engine_;
};

}  // namespace saltus
