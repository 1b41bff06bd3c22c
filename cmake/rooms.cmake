# The rooms, left to right: a room may include itself and the rooms it names (and what those name).
room(base)
room(solve base)
room(expr solve)
room(code expr)
room(model code)
room(flow model)
room(analysis flow)
room(out base)
room(ask analysis out)
room(report ask)
room(app report)
room(studio app)

target_link_libraries(saltus_base PUBLIC ${SALTUS_FMT} Threads::Threads)

# Third-party headers stay behind one file each.
if(SALTUS_PORTABLE)
  find_path(TOMLPLUSPLUS_HEADERS toml++/toml.h REQUIRED)
  add_library(saltus_toml INTERFACE)
  target_include_directories(saltus_toml SYSTEM INTERFACE ${TOMLPLUSPLUS_HEADERS})
  target_compile_definitions(saltus_toml INTERFACE TOML_HEADER_ONLY=1)
  set(SALTUS_TOML saltus_toml)
else()
  find_package(tomlplusplus REQUIRED)
  set(SALTUS_TOML tomlplusplus::tomlplusplus)
endif()
find_package(HDF5 REQUIRED COMPONENTS C)

target_link_libraries(saltus_model PRIVATE ${SALTUS_TOML})
target_link_libraries(saltus_ask PRIVATE ${SALTUS_TOML})
target_include_directories(saltus_out SYSTEM PRIVATE ${HDF5_C_INCLUDE_DIRS})
target_link_libraries(saltus_out PRIVATE ${CMAKE_DL_LIBS})
target_link_libraries(saltus_analysis PRIVATE ${CMAKE_DL_LIBS})


find_package(CLI11 REQUIRED)
target_link_libraries(saltus_app PRIVATE CLI11::CLI11)
target_compile_definitions(saltus_app PRIVATE SALTUS_VERSION="${PROJECT_VERSION}")
target_compile_definitions(saltus_ask PRIVATE SALTUS_VERSION="${PROJECT_VERSION}")

find_package(nlohmann_json REQUIRED)
target_link_libraries(saltus_studio PRIVATE nlohmann_json::nlohmann_json)
include(cmake/web.cmake)

# The gallery lives inside the program: models/*/model.toml become one C++ file.
file(GLOB gallery_models CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/models/*/model.toml)
file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/gallery_models.txt CONTENT "${gallery_models}")  # so that one removed goes
add_custom_command(OUTPUT ${CMAKE_BINARY_DIR}/gallery_data.cpp
  COMMAND ${CMAKE_COMMAND} -DMODELS=${CMAKE_SOURCE_DIR}/models -DOUTPUT=${CMAKE_BINARY_DIR}/gallery_data.cpp
          -P ${CMAKE_SOURCE_DIR}/cmake/gallery.cmake
  DEPENDS ${gallery_models} ${CMAKE_BINARY_DIR}/gallery_models.txt ${CMAKE_SOURCE_DIR}/cmake/gallery.cmake
  COMMENT "Collecting the gallery")
target_sources(saltus_ask PRIVATE ${CMAKE_BINARY_DIR}/gallery_data.cpp)
# The files that are compiled for longer registers; the machine is asked before they are used (base/simd.hpp).
if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64|amd64)$")
  set(avx2 -mavx2)
  set(fma -mfma)
endif()
set_source_files_properties(${CMAKE_SOURCE_DIR}/src/code/jet_fours.cpp PROPERTIES
  COMPILE_OPTIONS "${avx2}" SKIP_PRECOMPILE_HEADERS ON)
set_source_files_properties(${CMAKE_SOURCE_DIR}/src/code/columns_wide.cpp PROPERTIES
  COMPILE_OPTIONS "${avx2}" SKIP_PRECOMPILE_HEADERS ON)
set_source_files_properties(${CMAKE_SOURCE_DIR}/src/solve/one_box_wide.cpp PROPERTIES
  COMPILE_OPTIONS "${avx2};${fma};-ffp-contract=fast" SKIP_PRECOMPILE_HEADERS ON)

# Rooms that are no inner loops: -O3 makes them longer, not faster.
if(CMAKE_BUILD_TYPE STREQUAL Release AND SALTUS_OPTIMISE STREQUAL "-O3")
  foreach(name expr model analysis out ask report app studio)
    target_compile_options(saltus_${name} PRIVATE -O2)
  endforeach()
endif()
