// The few functions of MPI that run_job needs. They live in a module of their own (libsaltus_mpi.so, work_mpi.cpp),
// loaded only under mpirun: a plain start pays nothing for MPI.
#pragma once

#include <cstddef>
#include <string>

namespace saltus {

struct MpiMessage {
  int rank = 0;  ///< of the sender
  int tag = 0;
  std::string bytes;
};

/// To be called from the thread that loaded it, and from no other.
struct Mpi {
  int rank = 0, size = 1;
  int neighbours = 1;                                                   ///< ranks on this machine, this one included
  void (*send)(int rank, int tag, const std::string& bytes) = nullptr;  ///< returns before it has arrived
  bool (*receive)(MpiMessage& message) = nullptr;                       ///< false: nothing is there
  void (*finish)() = nullptr;                                           ///< waits until everything sent has arrived
};

/// The one symbol of the module: starts MPI and fills in what it offers.
extern "C" void saltus_start_mpi(Mpi& mpi);

}  // namespace saltus
