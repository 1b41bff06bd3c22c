#include "analysis/team.hpp"

#include <chrono>
#include <cstdlib>
#include <string>
#include <thread>

#include <dlfcn.h>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/module.hpp"

namespace saltus {
namespace {

/// True if this process was started as one of several: mpirun of Open MPI, MPICH and its like, srun.
bool started_by_mpi() {
  const auto above_one = [](const char* name) {
    const char* text = std::getenv(name);
    return text != nullptr && std::atoi(text) > 1;
  };
  return above_one("OMPI_COMM_WORLD_SIZE") || above_one("PMI_SIZE") ||
         (std::getenv("PMIX_RANK") != nullptr && std::getenv("OMPI_COMM_WORLD_SIZE") == nullptr &&
          above_one("SLURM_NTASKS"));
}

Mpi load_mpi() {
  const auto path = find_module("libsaltus_mpi.so");
  if (path.empty())
    throw Error(ErrorKind::usage, "this saltus was built without MPI", {},
                "run it without mpirun, or build it where libopenmpi-dev is installed");
  void* module = ::dlopen(path.c_str(), RTLD_NOW | RTLD_GLOBAL);  // Open MPI loads parts of itself that look for it
  if (module == nullptr)
    throw Error(ErrorKind::file, fmt::format("cannot use MPI: {}", ::dlerror()), {},
                "install the MPI library saltus was built with (Debian: libopenmpi3)");
  const auto start = reinterpret_cast<decltype(&saltus_start_mpi)>(::dlsym(module, "saltus_start_mpi"));
  if (start == nullptr) throw Error(ErrorKind::file, fmt::format("'{}' is not saltus's", path.string()));
  Mpi mpi;
  start(mpi);
  return mpi;
}

}  // namespace

Team& Team::of_this_process() {
  static Team team;
  return team;
}

Team::Team() {
  if (started_by_mpi()) mpi_ = load_mpi();
  gone_.resize(static_cast<size_t>(mpi_.size), false);
}

Team::~Team() {
  if (mpi_.size == 1 && mpi_.finish == nullptr) return;
  if (mpi_.rank == 0) {
    quit();
  } else if (!quit_) {
    send(0, Tag::gone);
    while (!quit_) {
      if (!receive()) std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
  }
  mpi_.finish();
}

void Team::send(int rank, Tag tag, const Bytes& bytes) { mpi_.send(rank, static_cast<int>(tag), bytes); }

std::optional<RankMessage> Team::receive() {
  MpiMessage got;
  if (mpi_.receive == nullptr || !mpi_.receive(got)) return std::nullopt;
  RankMessage message{got.rank, static_cast<Tag>(got.tag), std::move(got.bytes)};
  if (message.tag == Tag::gone) gone_[static_cast<size_t>(message.rank)] = true;
  if (message.tag == Tag::quit) quit_ = true;
  return message;
}

void Team::quit() {
  if (quit_) return;
  quit_ = true;
  for (int r = 1; r < size(); ++r) send(r, Tag::quit);
}

}  // namespace saltus
