// The processes of one mpirun as a team: rank 0 leads, the others follow. Alone where there is no mpirun.
//
// A follower tells the leader that it is `ready` for a job or `gone` for good; it gets `task`s and gives `result`s
// until the `end` of the job (`stop` asks it to give up what it is at, which is then `stopped`), or until the leader
// tells all to `quit` because it has left.
#pragma once

#include <optional>
#include <vector>

#include "analysis/bytes.hpp"
#include "analysis/mpi.hpp"

namespace saltus {

enum class Tag { ready, gone, task, result, failed, results, end, quit, stop, stopped };

struct RankMessage {
  int rank = 0;
  Tag tag = Tag::ready;
  Bytes bytes;
};

class Team {
 public:
  /// The team of this process; made on first use (and MPI started with it, where mpirun or its like is around).
  static Team& of_this_process();

  int rank() const { return mpi_.rank; }
  int size() const { return mpi_.size; }
  int neighbours() const { return mpi_.neighbours; }
  void send(int rank, Tag tag, const Bytes& bytes = {});
  /// The next message, if there is one. A follower that gets `quit` keeps it in mind.
  std::optional<RankMessage> receive();
  bool has_gone(int rank) const { return gone_[static_cast<size_t>(rank)]; }
  /// The leader tells all followers that no more is to come.
  void quit();

  Team(const Team&) = delete;
  Team& operator=(const Team&) = delete;

 private:
  Team();
  ~Team();

  Mpi mpi_;
  std::vector<bool> gone_;
  bool quit_ = false;
};

}  // namespace saltus
