#include "out/write.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <random>
#include <system_error>

#include <fmt/format.h>

#include "out/hdf5.hpp"

namespace saltus {
namespace fs = std::filesystem;
namespace {

std::string remedy_of_reading(int reason) {
  switch (reason) {
    case ENOENT: return "check the name";
    case EACCES:
    case EPERM: return "you may not read it: ask its owner, or take a copy that is yours";
    case ENOTDIR: return "a part of the path is a file, not a folder: check the name";
    case EISDIR: return "this is a folder: give a file in it";
    default: return "give another file";
  }
}

std::string remedy(int reason) {
  switch (reason) {
    case ENOSPC:
    case EDQUOT: return "the disk is full: free some space, or choose another folder with `folder` DIR";
    case EFBIG:
      return "the file would be larger than allowed: save fewer points, or choose another folder with `folder` DIR";
    case EACCES:
    case EPERM:
    case EROFS: return "choose a folder you may write to with `folder` DIR";
    case ENOENT: return "the folder does not exist: create it first";
    case ENOTDIR: return "a part of the path is a file, not a folder: choose another path";
    case EISDIR:
    case EEXIST: return "something else has this name: move it away, or choose another name";
    case ENAMETOOLONG: return "choose a shorter name";
    default: return "choose another folder with `folder` DIR";
  }
}

/// A file being written, closed whatever happens. Errors name the path the user knows, not the temporary one.
class OutFile {
 public:
  OutFile(const fs::path& temporary, const fs::path& path)
      : path_(path), fd_(::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666)) {
    if (fd_ < 0) throw file_error(path_, errno);
  }
  OutFile(const OutFile&) = delete;
  OutFile& operator=(const OutFile&) = delete;
  ~OutFile() {
    if (fd_ >= 0) ::close(fd_);
  }

  void put(std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t n = ::write(fd_, bytes.data(), bytes.size());
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) throw file_error(path_, errno);
      bytes.remove_prefix(static_cast<size_t>(n));
    }
  }

  /// Some file systems report a full disk only here.
  void close() {
    const int fd = fd_;
    fd_ = -1;
    if (::close(fd) != 0 && errno != EINTR) throw file_error(path_, errno);
  }

 private:
  fs::path path_;
  int fd_;
};

void append_csv_text(std::string& out, std::string_view text) {
  if (text.find_first_of(",\"\r\n") == text.npos) {
    out += text;
    return;
  }
  out += '"';
  for (const char c : text) {
    if (c == '"') out += '"';
    out += c;
  }
  out += '"';
}

/// A name nobody else has: a process of the same number, killed before or in another container, may have left one.
fs::path temporary_beside(const fs::path& path) {
  std::random_device random;
  return path.parent_path() / fmt::format(".saltus-{}-{:08x}{:08x}.part", ::getpid(), random(), random());
}

}  // namespace

Error file_error(const fs::path& path, int reason, std::string_view action) {
  return Error(ErrorKind::file,
               fmt::format("cannot {} '{}': {}", action, path.string(), std::generic_category().message(reason)), {},
               action == "read" ? remedy_of_reading(reason) : remedy(reason));
}

void append_number(std::string& text, double value) {
  if (std::isnan(value)) {
    text += "nan";  // never "-nan", which readers do not expect
    return;
  }
  char digits[32];
  const auto end = std::to_chars(digits, digits + sizeof digits, value).ptr;
  text.append(digits, end);
}

void write_atomically(const fs::path& path, const std::function<void(const fs::path&)>& fill) {
  const fs::path temporary = temporary_beside(path);
  try {
    fill(temporary);
    if (::rename(temporary.c_str(), path.c_str()) != 0) throw file_error(path, errno);
  } catch (...) {
    ::unlink(temporary.c_str());
    throw;
  }
}

void write_text(const fs::path& path, std::string_view text) {
  write_atomically(path, [&](const fs::path& temporary) {
    OutFile file(temporary, path);
    file.put(text);
    file.close();
  });
}

namespace {

/// Hands the text of the table over in pieces of about a megabyte.
template <class Put>
void put_csv(const Table& table, const Put& put) {
  const size_t chunk = 1 << 20;
  std::string out;
  out.reserve(chunk + 4096);
  const std::vector<Column>& columns = table.columns();
  for (size_t i = 0; i < columns.size(); ++i) {
    if (i > 0) out += ',';
    append_csv_text(out, columns[i].name);
  }
  out += '\n';
  for (size_t row = 0; row < table.rows(); ++row) {
    for (size_t i = 0; i < columns.size(); ++i) {
      if (i > 0) out += ',';
      if (const auto* numbers = std::get_if<Numbers>(&columns[i].values)) {
        append_number(out, (*numbers)[row]);
      } else {
        append_csv_text(out, std::get<Texts>(columns[i].values)[row]);
      }
    }
    out += '\n';
    if (out.size() >= chunk) {
      put(out);
      out.clear();
    }
  }
  put(out);
}

}  // namespace

void write_csv(const fs::path& path, const Table& table) {
  write_atomically(path, [&](const fs::path& temporary) {
    OutFile file(temporary, path);
    put_csv(table, [&](const std::string& text) { file.put(text); });
    file.close();
  });
}

std::string csv_text(const Table& table) {
  std::string all;
  put_csv(table, [&](const std::string& text) { all += text; });
  return all;
}

std::vector<fs::path> write_tables(const fs::path& folder, std::span<const Table> tables, DataFormat format) {
  if (format == DataFormat::h5) {
    write_hdf5(folder / "data.h5", tables);
    return {folder / "data.h5"};
  }
  std::vector<fs::path> written;
  for (const Table& table : tables) {
    written.push_back(folder / (table.name() + ".csv"));
    write_csv(written.back(), table);
  }
  return written;
}

void make_folder(const fs::path& folder) {
  std::error_code trouble;
  fs::create_directories(folder, trouble);
  if (!trouble && !fs::is_directory(folder, trouble)) trouble = std::make_error_code(std::errc::not_a_directory);
  if (trouble) throw file_error(folder, trouble.value(), "create the folder");
}

fs::path next_folder(const fs::path& base, std::string_view stem) {
  make_folder(base.empty() ? "." : base);
  std::string name(stem.empty() ? "result" : stem);
  for (char& c : name) {
    if (c == '/' || static_cast<unsigned char>(c) < ' ') c = '_';
  }
  name += '-';

  unsigned largest = 0;
  std::error_code trouble;
  for (fs::directory_iterator it(base.empty() ? "." : base, trouble), end; !trouble && it != end;
       it.increment(trouble)) {
    const std::string found = it->path().filename().string();
    unsigned number = 0;
    if (!found.starts_with(name)) continue;
    const auto [ptr, ec] = std::from_chars(found.data() + name.size(), found.data() + found.size(), number);
    if (ec == std::errc() && ptr == found.data() + found.size() && number < 1'000'000'000) {
      largest = std::max(largest, number);
    }
  }
  for (unsigned number = largest + 1;; ++number) {
    const fs::path folder = base / fmt::format("{}{:03}", name, number);
    if (::mkdir(folder.c_str(), 0777) == 0) return folder;  // mkdir is the test: whoever makes it, has it
    if (errno != EEXIST) throw file_error(folder, errno, "create the folder");
  }
}

}  // namespace saltus
