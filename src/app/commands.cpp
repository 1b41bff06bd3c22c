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

}  // namespace saltus
