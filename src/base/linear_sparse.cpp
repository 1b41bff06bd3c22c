#include <algorithm>
#include <cmath>

#include "base/linear.hpp"

namespace saltus {
namespace {

/// The order in which a symmetric pattern (that of A + A^T) is eliminated with little fill: always an unknown with
/// the fewest neighbours. What has been eliminated stands for the clique it leaves ("element"); numbers of neighbours
/// are the upper bounds of Amestoy, Davis & Duff (1996), and an element that lies in a newer one is dropped.
class MinimumDegree {
 public:
  explicit MinimumDegree(const SparseMat& A) : n_(static_cast<int>(A.cols())) {
    const size_t n = static_cast<size_t>(n_);
    neighbours_.resize(n), elements_.resize(n), members_.resize(n);
    state_.assign(n, State::waiting);
    degree_.assign(n, 0), mark_.assign(n, -1), beyond_.assign(n, 0), seen_.assign(n, -1);
    for (int j = 0; j < n_; ++j)
      for (const auto [i, value] : A.column(j)) {
        if (i == j) continue;
        neighbours_[i].push_back(j);
        neighbours_[j].push_back(i);
      }
    buckets_.resize(n);
    for (int i = 0; i < n_; ++i) {
      std::vector<int>& of = neighbours_[i];
      std::sort(of.begin(), of.end());
      of.erase(std::unique(of.begin(), of.end()), of.end());
      file(i, static_cast<int>(of.size()));
    }
  }

  std::vector<int> order() {
    std::vector<int> out;
    out.reserve(static_cast<size_t>(n_));
    while (static_cast<int>(out.size()) < n_) {
      const int p = next();
      out.push_back(p);
      eliminate(p, n_ - static_cast<int>(out.size()));
    }
    return out;
  }

 private:
  enum class State : char { waiting, element, gone };

  void file(int i, int degree) {
    degree_[i] = degree;
    buckets_[degree].push_back(i);
    lowest_ = std::min(lowest_, degree);
  }

  /// Buckets keep what has been filed elsewhere since: it is passed over.
  int next() {
    while (true) {
      std::vector<int>& bucket = buckets_[lowest_];
      if (bucket.empty()) {
        ++lowest_;
        continue;
      }
      const int i = bucket.back();
      bucket.pop_back();
      if (state_[i] == State::waiting && degree_[i] == lowest_) return i;
    }
  }

  void eliminate(int p, int left) {
    std::vector<int>& clique = members_[p];
    mark_[p] = p;
    const auto add = [&](int i) {
      if (state_[i] != State::waiting || mark_[i] == p) return;
      mark_[i] = p;
      clique.push_back(i);
    };
    for (const int i : neighbours_[p]) add(i);
    for (const int e : elements_[p]) {
      for (const int i : members_[e]) add(i);
      drop(e);
    }
    neighbours_[p] = {}, elements_[p] = {};
    state_[p] = State::element;
    count_beyond(clique, p);
    for (const int i : clique) update(i, p, static_cast<int>(clique.size()), left);
  }

  void drop(int element) {
    state_[element] = State::gone;
    members_[element] = {};
  }

  /// How many members each element next to the new one has beyond it.
  void count_beyond(const std::vector<int>& clique, int p) {
    for (const int i : clique)
      for (const int e : elements_[i]) {
        if (state_[e] != State::element) continue;
        if (seen_[e] != p) {
          std::erase_if(members_[e], [&](int k) { return state_[k] != State::waiting; });
          beyond_[e] = static_cast<int>(members_[e].size());
          seen_[e] = p;
        }
        --beyond_[e];
      }
  }

  void update(int i, int p, int clique, int left) {
    std::vector<int>& of = neighbours_[i];
    std::erase_if(of, [&](int k) { return mark_[k] == p; });
    std::vector<int>& in = elements_[i];
    int degree = static_cast<int>(of.size()) + clique - 1;
    std::erase_if(in, [&](int e) {
      if (state_[e] == State::element && beyond_[e] == 0) drop(e);
      if (state_[e] != State::element) return true;
      degree += beyond_[e];
      return false;
    });
    in.push_back(p);
    file(i, std::min(degree, left - 1));
  }

  int n_, lowest_ = 0;
  std::vector<std::vector<int>> neighbours_, elements_, members_, buckets_;
  std::vector<State> state_;
  std::vector<int> degree_, mark_, beyond_, seen_;
};

/// Columns of a triangular factor, one behind the other.
struct Columns {
  std::vector<int> starts = {0}, rows;
  std::vector<double> values;

  void clear() { starts.assign(1, 0), rows.clear(), values.clear(); }
  void append(int row, double value) { rows.push_back(row), values.push_back(value); }
  void end_column() { starts.push_back(static_cast<int>(rows.size())); }
};

constexpr double keep_diagonal = 0.1;  // of the largest entry of a column: then its diagonal is the pivot

}  // namespace

/// Left-looking LU after Gilbert & Peierls (1988): a column of A is reduced by the columns of L that its pattern
/// reaches.
struct SparseLu::Memory {
  int n = 0;
  std::vector<int> order;    // columns, as they are eliminated
  std::vector<int> place;    // of a row: the step whose pivot it is, or -1
  std::vector<int> pivot;    // of a step: its row
  Columns L, U;              // L: rows of A below a unit diagonal; U: steps, the diagonal last
  std::vector<double> x;     // the column under way, by rows
  std::vector<int> visited;  // of a row: the last step that reached it
  std::vector<int> reach, stack, resume;

  /// The rows that column k of A reaches, in an order in which each comes before those it acts on.
  void find_reach(const SparseMat& A, int k) {
    reach.clear();
    for (const auto [row, value] : A.column(order[k])) {
      if (visited[row] == k) continue;
      visited[row] = k;
      stack.assign(1, row), resume.assign(1, 0);
      while (!stack.empty()) {
        const int at = stack.back(), step = place[at];
        bool deeper = false;
        if (step >= 0) {
          const int begin = L.starts[step], end = L.starts[step + 1];
          for (int& i = resume.back(); begin + i < end;) {
            const int below = L.rows[begin + i++];
            if (visited[below] == k) continue;
            visited[below] = k;
            stack.push_back(below), resume.push_back(0);
            deeper = true;
            break;
          }
        }
        if (deeper) continue;
        reach.push_back(at);
        stack.pop_back(), resume.pop_back();
      }
    }
    std::reverse(reach.begin(), reach.end());
  }

  void reduce(const SparseMat& A, int k) {
    for (const int row : reach) x[row] = 0;
    for (const auto [row, value] : A.column(order[k])) x[row] = value;
    for (const int row : reach) {
      const int step = place[row];
      const double factor = x[row];
      if (step < 0 || factor == 0) continue;
      for (int i = L.starts[step]; i < L.starts[step + 1]; ++i) x[L.rows[i]] -= L.values[i] * factor;
    }
  }

  /// The row of the pivot of step k, or -1 if there is none.
  int choose_pivot(int k) const {
    int best = -1;
    double largest = 0;
    for (const int row : reach) {
      const double size = std::abs(x[row]);
      if (!std::isfinite(size)) return -1;
      if (place[row] < 0 && size > largest) best = row, largest = size;
    }
    const int diagonal = order[k];
    const bool free = visited[diagonal] == k && place[diagonal] < 0;
    return free && std::abs(x[diagonal]) > keep_diagonal * largest ? diagonal : best;
  }

  bool factor(const SparseMat& A) {
    place.assign(static_cast<size_t>(n), -1), visited.assign(static_cast<size_t>(n), -1);
    pivot.assign(static_cast<size_t>(n), -1), x.assign(static_cast<size_t>(n), 0);
    L.clear(), U.clear();
    for (int k = 0; k < n; ++k) {
      find_reach(A, k);
      reduce(A, k);
      const int chosen = choose_pivot(k);
      if (chosen < 0) return false;
      const double diagonal = x[chosen];
      for (const int row : reach) {
        const int step = place[row];
        if (step >= 0)
          U.append(step, x[row]);
        else if (row != chosen)
          L.append(row, x[row] / diagonal);
      }
      U.append(k, diagonal);
      L.end_column(), U.end_column();
      place[chosen] = k, pivot[k] = chosen;
    }
    return true;
  }

  Vec solve(Vec b) const {
    for (int k = 0; k < n; ++k) {
      const double value = b[pivot[k]];
      if (value == 0) continue;
      for (int i = L.starts[k]; i < L.starts[k + 1]; ++i) b[L.rows[i]] -= L.values[i] * value;
    }
    Vec out(n);
    for (int k = n - 1; k >= 0; --k) {
      const int last = U.starts[k + 1] - 1;
      const double value = b[pivot[k]] / U.values[last];
      out[order[k]] = value;
      for (int i = U.starts[k]; i < last; ++i) b[pivot[U.rows[i]]] -= U.values[i] * value;
    }
    return out;
  }
};

SparseLu::SparseLu() : memory_(std::make_unique<Memory>()) {}
SparseLu::SparseLu(SparseLu&& other) noexcept = default;
SparseLu& SparseLu::operator=(SparseLu&& other) noexcept = default;
SparseLu::~SparseLu() = default;

void SparseLu::analyse(const SparseMat& A) {
  memory_->n = static_cast<int>(A.cols());
  memory_->order = MinimumDegree(A).order();
}

bool SparseLu::factor(const SparseMat& A) { return memory_->factor(A); }

Vec SparseLu::solve(const Vec& b) const { return memory_->solve(b); }

Index SparseLu::entries() const { return static_cast<Index>(memory_->L.values.size() + memory_->U.values.size()); }

}  // namespace saltus
