# libsaltus.so, the headers it is used with, and find_package(saltus): cmake --install <build> --component library
set(objects)
foreach(room base solve expr code model flow analysis out ask report)
  list(APPEND objects $<TARGET_OBJECTS:saltus_${room}>)
endforeach()
add_library(saltus_library SHARED ${objects})
add_library(saltus::saltus ALIAS saltus_library)
target_link_libraries(saltus_library PRIVATE fmt::fmt Threads::Threads tomlplusplus::tomlplusplus
  ${SLEEF} ${CMAKE_DL_LIBS})
set_target_properties(saltus_library PROPERTIES OUTPUT_NAME saltus EXPORT_NAME saltus VERSION ${PROJECT_VERSION}
  SOVERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR})  # until 1.0 a minor version may change anything
target_compile_features(saltus_library INTERFACE cxx_std_20)
target_include_directories(saltus_library INTERFACE
  $<INSTALL_INTERFACE:include/saltus> $<BUILD_INTERFACE:${CMAKE_SOURCE_DIR}/include/saltus>)

# The headers that saltus.hpp leads to, at their places in the rooms.
set(headers)
set(waiting ${CMAKE_SOURCE_DIR}/include/saltus/saltus.hpp)
while(waiting)
  list(POP_FRONT waiting header)
  file(STRINGS ${header} lines REGEX "^#include \"")
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${header})
  foreach(line ${lines})
    string(REGEX REPLACE "^#include \"(.*)\"$" "\\1" name "${line}")
    if(NOT name IN_LIST headers)
      list(APPEND headers ${name})
      list(APPEND waiting ${CMAKE_SOURCE_DIR}/src/${name})
    endif()
  endforeach()
endwhile()

include(GNUInstallDirs)
include(CMakePackageConfigHelpers)
foreach(header ${headers})
  get_filename_component(room ${header} DIRECTORY)
  install(FILES src/${header} DESTINATION include/saltus/${room} COMPONENT library)
endforeach()
install(FILES include/saltus/saltus.hpp DESTINATION include/saltus COMPONENT library)
install(TARGETS saltus_library EXPORT saltusTargets
  LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT library NAMELINK_COMPONENT library)
set(package ${CMAKE_INSTALL_LIBDIR}/cmake/saltus)
install(EXPORT saltusTargets NAMESPACE saltus:: DESTINATION ${package} FILE saltusConfig.cmake COMPONENT library)
write_basic_package_version_file(${CMAKE_BINARY_DIR}/saltusConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_BINARY_DIR}/saltusConfigVersion.cmake DESTINATION ${package} COMPONENT library)
