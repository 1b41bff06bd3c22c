// Tables in one HDF5 file: a group per table, a dataset per column.
//
//     /data               attributes: description, columns (names in order)
//     /data/t             double, chunked and compressed where long; attributes: name, description
//     /events/kind        fixed-length UTF-8
//
// The HDF5 library is loaded when it is first needed, so that commands without it do not pay for its start (about 4
// ms).
#pragma once

#include <filesystem>
#include <span>
#include <string_view>

#include "base/table.hpp"

namespace saltus {

/// Writes all tables; the file appears whole or not at all. A '/' in a name becomes '|' in the name of its dataset.
void write_hdf5(const std::filesystem::path& path, std::span<const Table> tables);

/// Reads one column back.
Column read_hdf5_column(const std::filesystem::path& path, std::string_view table, std::string_view column);

}  // namespace saltus
