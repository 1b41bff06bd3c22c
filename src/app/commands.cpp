#include "app/commands.hpp"

namespace saltus {

Status status_of(const Error& error) {
  switch (error.kind()) {
    case ErrorKind::usage: return Status::bad_usage;
    case ErrorKind::file: return Status::file_trouble;
    case ErrorKind::model: break;
  }
  return Status::bad_model;
}

Status status_of(const End& end) {
  switch (end.why) {
    case Why::time:
    case Why::stop:
    case Why::count: return Status::done;
    case Why::cancelled: return Status::interrupted;
    default: return Status::ended_badly;
  }
}

}  // namespace saltus
