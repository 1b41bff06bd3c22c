# The rooms, left to right: a room may include itself and the rooms it names (and what those name).
room(base)
room(solve base)
room(expr solve)
room(model expr)
room(code model)
room(flow code)
room(analysis flow)
room(out base)
room(app analysis out)

target_link_libraries(saltus_base PUBLIC fmt::fmt Eigen3::Eigen Threads::Threads)

# Third-party headers stay behind one file each.
find_package(tomlplusplus REQUIRED)
find_package(HDF5 REQUIRED COMPONENTS C)
find_package(SUNDIALS REQUIRED)
target_link_libraries(saltus_model PRIVATE tomlplusplus::tomlplusplus)
target_include_directories(saltus_out SYSTEM PRIVATE ${HDF5_C_INCLUDE_DIRS})
target_link_libraries(saltus_out PRIVATE ${HDF5_C_LIBRARIES})
target_link_libraries(saltus_flow PRIVATE SUNDIALS::cvode SUNDIALS::nvecserial)
