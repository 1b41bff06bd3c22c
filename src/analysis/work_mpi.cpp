// The module behind analysis/mpi.hpp; the only file that knows MPI.
#include <mpi.h>

#include <iterator>
#include <list>

#include "analysis/mpi.hpp"

namespace saltus {
namespace {

/// A sent message stays in memory until it has arrived: a blocking send could wait for a receiver that itself sends.
struct Sending {
  std::string bytes;
  MPI_Request request;
};

std::list<Sending>& sendings() {
  static std::list<Sending> list;
  return list;
}

void forget_arrived() {
  for (auto it = sendings().begin(); it != sendings().end();) {
    int arrived = 0;
    MPI_Test(&it->request, &arrived, MPI_STATUS_IGNORE);
    it = arrived != 0 ? sendings().erase(it) : std::next(it);
  }
}

void send(int rank, int tag, const std::string& bytes) {
  constexpr size_t most = 64;  // messages under way; more would fill the memory with results nobody has fetched
  forget_arrived();
  while (sendings().size() > most) {
    MPI_Wait(&sendings().front().request, MPI_STATUS_IGNORE);
    sendings().pop_front();
  }
  sendings().push_back({bytes, MPI_REQUEST_NULL});
  Sending& s = sendings().back();
  MPI_Isend(s.bytes.data(), static_cast<int>(s.bytes.size()), MPI_BYTE, rank, tag, MPI_COMM_WORLD, &s.request);
}

bool receive(MpiMessage& message) {
  forget_arrived();
  int there = 0, size = 0;
  MPI_Status status;
  MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &there, &status);
  if (there == 0) return false;
  MPI_Get_count(&status, MPI_BYTE, &size);
  message.rank = status.MPI_SOURCE;
  message.tag = status.MPI_TAG;
  message.bytes.resize(static_cast<size_t>(size));
  MPI_Recv(message.bytes.data(), size, MPI_BYTE, message.rank, message.tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  return true;
}

void finish() {
  while (!sendings().empty()) {
    MPI_Wait(&sendings().front().request, MPI_STATUS_IGNORE);
    sendings().pop_front();
  }
  MPI_Finalize();
}

}  // namespace

extern "C" void saltus_start_mpi(Mpi& mpi) {
  sendings();  // made before the caller is, it lives longer
  int given = 0;
  MPI_Init_thread(nullptr, nullptr, MPI_THREAD_FUNNELED, &given);
  mpi = {.send = send, .receive = receive, .finish = finish};
  MPI_Comm_rank(MPI_COMM_WORLD, &mpi.rank);
  MPI_Comm_size(MPI_COMM_WORLD, &mpi.size);
  MPI_Comm machine;
  MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &machine);
  MPI_Comm_size(machine, &mpi.neighbours);
  MPI_Comm_free(&machine);
}

}  // namespace saltus
