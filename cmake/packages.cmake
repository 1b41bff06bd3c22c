# cpack: .deb packages by component, or one archive that runs from any place (`make deb`, `make archive`).
set(CPACK_PACKAGE_VENDOR "The saltus maintainers")
set(CPACK_PACKAGE_CONTACT "The saltus maintainers <saltus@localhost>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "nonsmooth dynamical systems from equations written as on paper")
set(CPACK_RESOURCE_FILE_LICENSE ${CMAKE_SOURCE_DIR}/LICENSE)
set(CPACK_PACKAGE_DIRECTORY ${CMAKE_BINARY_DIR}/packages)
set(CPACK_STRIP_FILES ON)
set(CPACK_PACKAGE_FILE_NAME saltus-${PROJECT_VERSION}-${CMAKE_SYSTEM_NAME}-${CMAKE_SYSTEM_PROCESSOR})
set(CPACK_COMPONENTS_ALL program library development)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS ${CMAKE_BINARY_DIR})
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)

# component  package  section  what it is
macro(debian_package component package section)
  string(TOUPPER ${component} NAME)
  set(CPACK_DEBIAN_${NAME}_PACKAGE_NAME ${package})
  set(CPACK_DEBIAN_${NAME}_PACKAGE_SECTION ${section})
  set(CPACK_COMPONENT_${NAME}_DESCRIPTION "${ARGN}")
  if(SALTUS_DEBIAN)
    install(FILES ${CMAKE_SOURCE_DIR}/cmake/debian/copyright ${CMAKE_BINARY_DIR}/changelog.gz
      DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/${package} COMPONENT ${component})
  endif()
endmacro()
if(SALTUS_DEBIAN)  # what Debian's policy asks for
  execute_process(COMMAND gzip -9nc ${CMAKE_SOURCE_DIR}/CHANGELOG.md OUTPUT_FILE ${CMAKE_BINARY_DIR}/changelog.gz)
endif()
debian_package(program saltus math
  "simulation and bifurcation analysis of nonsmooth dynamical systems
 Dry friction, relays, impacts, diodes and switching controllers, from equations
 written as on paper: trajectories with located events, periodic orbits and
 their branches, exponents and basins, in a terminal or a browser.")
debian_package(library libsaltus${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR} libs
  "simulation of nonsmooth dynamical systems, shared library
 What the program saltus is made of: questions as data go in, answers come out.")
debian_package(development libsaltus-dev libdevel
  "simulation of nonsmooth dynamical systems, headers
 Headers, find_package(saltus) and pkg-config for programs in C++20.")
set(CPACK_DEBIAN_PROGRAM_PACKAGE_RECOMMENDS "librsvg2-bin")
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_DEPENDS
  "libsaltus${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR} (= ${PROJECT_VERSION})")
set(CPACK_DEBIAN_LIBRARY_PACKAGE_SHLIBS OFF)
if(SALTUS_PYTHON)
  list(APPEND CPACK_COMPONENTS_ALL python)
  debian_package(python python3-saltus python
    "simulation of nonsmooth dynamical systems, Python module
 Questions and answers of saltus as objects and NumPy arrays.")
  set(CPACK_DEBIAN_PYTHON_PACKAGE_DEPENDS "python3 (>= 3.11), python3-numpy")
  set(CPACK_DEBIAN_PYTHON_PACKAGE_RECOMMENDS "python3-matplotlib")
endif()
if(SALTUS_HAS_NATIVE)
  list(APPEND CPACK_COMPONENTS_ALL native)
  debian_package(native saltus-native math
    "simulation of nonsmooth dynamical systems, machine code by LLVM
 Long runs of saltus twice as fast, bitwise equal.")
endif()
if(SALTUS_HAS_MPI)
  list(APPEND CPACK_COMPONENTS_ALL mpi)
  debian_package(mpi saltus-mpi math
    "simulation of nonsmooth dynamical systems, many processes by MPI
 Sweeps and basins of saltus under mpirun.")
endif()
include(CPack)
