#include "out/hdf5.hpp"

#include <dlfcn.h>
#include <hdf5.h>

#include <algorithm>
#include <mutex>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "base/error.hpp"
#include "out/text.hpp"
#include "out/write.hpp"

// Constants such as H5F_ACC_TRUNC call the library through these two; here it is opened by hand.
#undef H5CHECK
#define H5CHECK
#undef H5OPEN
#define H5OPEN

namespace saltus {
namespace fs = std::filesystem;
namespace {

/// The functions of the HDF5 library that are used here, found at run time under their own names and types.
struct Library {
#define SALTUS_HDF5_FUNCTIONS(f)                                                                                     \
  f(H5open) f(H5get_libversion) f(H5Eset_auto2) f(H5Fcreate) f(H5Fopen) f(H5Fclose) f(H5Fget_file_image) f(H5Fflush) \
      f(H5Gcreate2) f(H5Gclose) f(H5Dcreate2) f(H5Dopen2) f(H5Dwrite) f(H5Dread) f(H5Dget_space) f(H5Dget_type)      \
          f(H5Dclose) f(H5Screate) f(H5Screate_simple) f(H5Sget_simple_extent_npoints) f(H5Sclose) f(H5Tcopy)        \
              f(H5Tset_size) f(H5Tget_size) f(H5Tset_cset) f(H5Tset_strpad) f(H5Tget_class) f(H5Tclose) f(H5Pcreate) \
                  f(H5Pset_chunk) f(H5Pset_shuffle) f(H5Pset_deflate) f(H5Pset_fapl_core) f(H5Pclose) f(H5Acreate2)  \
                      f(H5Aopen) f(H5Aexists) f(H5Aread) f(H5Awrite) f(H5Aget_type) f(H5Aclose)
#define SALTUS_DECLARE(name) decltype(&::name) name = nullptr;
  SALTUS_HDF5_FUNCTIONS(SALTUS_DECLARE)
#undef SALTUS_DECLARE
  hid_t native_double = -1, ieee_double = -1, c_string = -1, dataset_create = -1, file_access = -1;

  Library() {
    void* handle = nullptr;
    for (const char* name : {"libhdf5_serial.so.310", "libhdf5.so.310", "libhdf5_serial.so.200", "libhdf5.so.200",
                             "libhdf5_serial.so.103", "libhdf5.so.103", "libhdf5_serial.so", "libhdf5.so"}) {
      if ((handle = ::dlopen(name, RTLD_NOW | RTLD_LOCAL)) == nullptr) continue;
      if (is_the_version_compiled_for(handle)) break;
      ::dlclose(handle);
      handle = nullptr;
    }
    if (handle == nullptr) {
      throw Error(ErrorKind::file,
                  fmt::format("the HDF5 library, version {}.{}, is not installed", H5_VERS_MAJOR, H5_VERS_MINOR), {},
                  "install it (Debian: libhdf5-103-1), or write CSV with `format` csv");
    }
#define SALTUS_LOAD(name) load(handle, #name, name);
    SALTUS_HDF5_FUNCTIONS(SALTUS_LOAD)
#undef SALTUS_LOAD
    H5open();                                     // gives the identifiers below their values
    H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);  // it would print on stderr
    native_double = identifier(handle, "H5T_NATIVE_DOUBLE_g");
    ieee_double = identifier(handle, "H5T_IEEE_F64LE_g");
    c_string = identifier(handle, "H5T_C_S1_g");
    dataset_create = identifier(handle, "H5P_CLS_DATASET_CREATE_ID_g");
    file_access = identifier(handle, "H5P_CLS_FILE_ACCESS_ID_g");
  }

  static bool is_the_version_compiled_for(void* handle) {
    decltype(&::H5get_libversion) version = nullptr;
    version = reinterpret_cast<decltype(version)>(::dlsym(handle, "H5get_libversion"));
    unsigned major = 0, minor = 0, release = 0;
    return version != nullptr && version(&major, &minor, &release) >= 0 && major == H5_VERS_MAJOR &&
           minor == H5_VERS_MINOR;
  }

  static void* symbol(void* handle, const char* name) {
    if (void* found = ::dlsym(handle, name)) return found;
    throw Error(ErrorKind::file, fmt::format("the HDF5 library has no '{}'", name), {}, "write CSV with `format` csv");
  }
  template <class Function>
  static void load(void* handle, const char* name, Function& function) {
    function = reinterpret_cast<Function>(symbol(handle, name));
  }
  static hid_t identifier(void* handle, const char* name) { return *static_cast<hid_t*>(symbol(handle, name)); }
};

const Library& library() {
  static const Library loaded;
  return loaded;
}

/// The library is not thread-safe in every build of it.
std::mutex& library_mutex() {
  static std::mutex mutex;
  return mutex;
}

/// A failed call. The caller knows which file it was about.
struct Failure {};

hid_t ok(hid_t id) { return id < 0 ? throw Failure{} : id; }

/// An identifier of the library, closed at the end of its scope.
class Handle {
 public:
  Handle(hid_t id, herr_t (*close)(hid_t)) : id_(ok(id)), close_(close) {}
  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;
  ~Handle() { close_(id_); }
  operator hid_t() const { return id_; }

 private:
  hid_t id_;
  herr_t (*close_)(hid_t);
};

std::string dataset_name(std::string_view name) {
  std::string out = valid_utf8(name);
  for (char& c : out) {
    if (c == '/' || c == '\0') c = '|';
  }
  return out.empty() || out == "." || out == ".." ? "_" + out : out;
}

size_t longest(std::span<const std::string> texts) {
  size_t n = 1;
  for (const std::string& t : texts) n = std::max(n, t.size());
  return n;
}

/// A string type of `size` bytes: UTF-8, filled up with zeros.
struct TextType : Handle {
  TextType(const Library& h5, size_t size) : Handle(h5.H5Tcopy(h5.c_string), h5.H5Tclose) {
    ok(h5.H5Tset_size(*this, size));
    ok(h5.H5Tset_cset(*this, H5T_CSET_UTF8));
    ok(h5.H5Tset_strpad(*this, H5T_STR_NULLPAD));
  }
};

std::string packed(std::span<const std::string> texts, size_t size) {
  std::string bytes(texts.size() * size, '\0');
  for (size_t i = 0; i < texts.size(); ++i) texts[i].copy(bytes.data() + i * size, size);
  return bytes;
}

void write_attribute(const Library& h5, hid_t owner, const char* name, std::span<const std::string> texts,
                     bool scalar) {
  const size_t size = longest(texts);
  const TextType type(h5, size);
  const hsize_t count = texts.size();
  const Handle space(scalar ? h5.H5Screate(H5S_SCALAR) : h5.H5Screate_simple(1, &count, nullptr), h5.H5Sclose);
  const Handle attribute(h5.H5Acreate2(owner, name, type, space, H5P_DEFAULT, H5P_DEFAULT), h5.H5Aclose);
  if (!texts.empty()) ok(h5.H5Awrite(attribute, type, packed(texts, size).data()));
}

void write_attribute(const Library& h5, hid_t owner, const char* name, const std::string& text) {
  if (!text.empty()) write_attribute(h5, owner, name, std::span(&text, 1), true);
}

void write_column(const Library& h5, hid_t group, const Column& column) {
  const hsize_t rows = column.size();
  const Handle space(h5.H5Screate_simple(1, &rows, nullptr), h5.H5Sclose);
  const Handle how(h5.H5Pcreate(h5.dataset_create), h5.H5Pclose);
  const hsize_t worth_compressing = 4096, chunk = std::min<hsize_t>(rows, 1 << 16);
  if (rows >= worth_compressing) {
    ok(h5.H5Pset_chunk(how, 1, &chunk));
    ok(h5.H5Pset_shuffle(how));  // neighbouring doubles share their leading bytes
    ok(h5.H5Pset_deflate(how, 1));
  }
  const auto create = [&](hid_t type) {
    return h5.H5Dcreate2(group, dataset_name(column.name).c_str(), type, space, H5P_DEFAULT, how, H5P_DEFAULT);
  };
  const auto finish = [&](hid_t dataset, hid_t memory_type, const void* values) {
    if (rows > 0) ok(h5.H5Dwrite(dataset, memory_type, H5S_ALL, H5S_ALL, H5P_DEFAULT, values));
    write_attribute(h5, dataset, "name", column.name);
    write_attribute(h5, dataset, "description", column.description);
  };
  if (const auto* numbers = std::get_if<Numbers>(&column.values)) {
    const Handle dataset(create(h5.ieee_double), h5.H5Dclose);
    finish(dataset, h5.native_double, numbers->data());
  } else {
    const Texts& texts = std::get<Texts>(column.values);
    const size_t size = longest(texts);
    const TextType type(h5, size);
    const Handle dataset(create(type), h5.H5Dclose);
    finish(dataset, type, packed(texts, size).data());
  }
}

void write_table(const Library& h5, hid_t file, const Table& table) {
  const std::string name = dataset_name(table.name());
  const Handle group(h5.H5Gcreate2(file, name.c_str(), H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT), h5.H5Gclose);
  write_attribute(h5, group, "description", table.description());
  Texts names;
  for (const Column& column : table.columns()) names.push_back(dataset_name(column.name));
  if (!names.empty()) write_attribute(h5, group, "columns", names, false);
  for (const Column& column : table.columns()) write_column(h5, group, column);
}

/// The whole file as bytes. NOTE: it is built in memory and written by us, because the library cannot give up a file
/// that a full disk keeps it from closing: it tries again, and complains, until the program ends.
std::string file_image(const Library& h5, std::span<const Table> tables) {
  const Handle access(h5.H5Pcreate(h5.file_access), h5.H5Pclose);
  const size_t growth = 4 << 20;
  ok(h5.H5Pset_fapl_core(access, growth, false));
  const Handle file(h5.H5Fcreate("memory", H5F_ACC_TRUNC, H5P_DEFAULT, access), h5.H5Fclose);
  for (const Table& table : tables) write_table(h5, file, table);
  ok(h5.H5Fflush(file, H5F_SCOPE_GLOBAL));
  const ssize_t size = h5.H5Fget_file_image(file, nullptr, 0);
  if (size < 0) throw Failure{};
  std::string bytes(static_cast<size_t>(size), '\0');
  if (h5.H5Fget_file_image(file, bytes.data(), bytes.size()) < 0) throw Failure{};
  return bytes;
}

Texts unpacked(const std::string& bytes, size_t size) {
  Texts texts;
  for (size_t at = 0; at < bytes.size(); at += size) {
    const std::string_view padded(bytes.data() + at, size);
    texts.emplace_back(padded.substr(0, padded.find('\0')));
  }
  return texts;
}

std::string read_attribute(const Library& h5, hid_t owner, const char* name) {
  if (h5.H5Aexists(owner, name) <= 0) return "";
  const Handle attribute(h5.H5Aopen(owner, name, H5P_DEFAULT), h5.H5Aclose);
  const Handle type(h5.H5Aget_type(attribute), h5.H5Tclose);
  std::string bytes(h5.H5Tget_size(type), '\0');
  ok(h5.H5Aread(attribute, type, bytes.data()));
  return unpacked(bytes, std::max<size_t>(1, bytes.size())).front();
}

Column read_column(const Library& h5, hid_t file, const std::string& place) {
  const Handle dataset(h5.H5Dopen2(file, place.c_str(), H5P_DEFAULT), h5.H5Dclose);
  const Handle space(h5.H5Dget_space(dataset), h5.H5Sclose);
  const Handle type(h5.H5Dget_type(dataset), h5.H5Tclose);
  const hssize_t count = h5.H5Sget_simple_extent_npoints(space);
  if (count < 0) throw Failure{};
  const size_t rows = static_cast<size_t>(count);
  Column column{.name = read_attribute(h5, dataset, "name"), .description = read_attribute(h5, dataset, "description")};
  if (h5.H5Tget_class(type) == H5T_STRING) {
    const size_t size = h5.H5Tget_size(type);
    std::string bytes(rows * size, '\0');
    if (rows > 0) ok(h5.H5Dread(dataset, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, bytes.data()));
    column.values = unpacked(bytes, size);
  } else {
    Numbers numbers(rows);
    if (rows > 0) ok(h5.H5Dread(dataset, h5.native_double, H5S_ALL, H5S_ALL, H5P_DEFAULT, numbers.data()));
    column.values = std::move(numbers);
  }
  return column;
}

}  // namespace

void write_hdf5(const fs::path& path, std::span<const Table> tables) {
  std::string bytes;
  try {
    const std::scoped_lock lock(library_mutex());
    bytes = file_image(library(), tables);
  } catch (const Failure&) {
    throw Error(ErrorKind::file,
                fmt::format("cannot make the HDF5 file '{}': two names may be equal, or memory short", path.string()),
                {}, "write CSV with `format` csv");
  }
  write_text(path, bytes);
}

Column read_hdf5_column(const fs::path& path, std::string_view table, std::string_view column) {
  const std::string place = fmt::format("/{}/{}", dataset_name(table), dataset_name(column));
  const std::scoped_lock lock(library_mutex());
  const Library& h5 = library();
  try {
    const Handle file(h5.H5Fopen(path.c_str(), H5F_ACC_RDONLY, H5P_DEFAULT), h5.H5Fclose);
    return read_column(h5, file, place);
  } catch (const Failure&) {
    throw Error(ErrorKind::file, fmt::format("cannot read '{}' from '{}'", place, path.string()), {},
                "see that the file exists and holds this table and column");
  }
}

}  // namespace saltus
